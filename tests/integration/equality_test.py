"""One prompt, however its KV came about: the same tokens and the same bits of
log-probabilities. The whole system, over its own API; finer combinations are
tested below the network."""

import random
import struct
import threading
import unittest

import cluster
from api import Api

# Longer than two attention splits of 256 positions, and not a whole number of
# blocks.
PROMPT = [random.Random(5).randrange(1000, 40000) for _ in range(555)]
STEPS = 12
# K and V of 30 layers x 3 heads x 64 in F16, 16 tokens.
PAGE_BYTES = 2 * 30 * 3 * 64 * 2 * 16
PROMPT_BLOCKS = -(-len(PROMPT) // 16)
# Seeded draws through every kind of stage, and mirostat, whose state travels.
SAMPLINGS = (
    {'temperature': 0.9, 'seed': 3, 'logprobs': 0, 'top_k': 200,
     'typical_p': 0.98, 'top_p': 0.98, 'min_p': 0.001, 'top_n_sigma': 6,
     'repetition_penalty': 1.2, 'presence_penalty': 0.2,
     'frequency_penalty': 0.2, 'dry_multiplier': 0.8, 'dry_allowed_length': 1,
     'xtc_probability': 0.5, 'xtc_threshold': 0.05},
    {'seed': 4, 'logprobs': 0, 'mirostat': True, 'mirostat_tau': 3},
)


def bits(values):
    return [struct.pack('<f', value) for value in values]


class Run:
    """Tokens and log-probability bits of one answer: greedy by default."""

    def __init__(self, api, prompt=None, steps=STEPS, sampling=None):
        self.answer = api.answer(
            ids={'ids': prompt or PROMPT},
            sampling=sampling or {'temperature': 0, 'logprobs': 0},
            stop={'max_tokens': steps, 'ignore_eos': True})
        self.result = (self.answer.ids, bits(self.answer.logprobs))
        self.moved = self.answer.last.transfer
        self.usage = self.answer.last.usage


class EqualityTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        with cluster.Cluster('--transport', 'shm') as one, Api(one.grpc) as api:
            cls.reference = Run(api)
            cls.short_reference = Run(api, PROMPT[:48], 3)
            cls.sampled = [Run(api, sampling=s).result for s in SAMPLINGS]

    def assert_equal(self, run):
        self.assertEqual(run.result[0], self.reference.result[0])
        self.assertEqual(run.result[1], self.reference.result[1])

    def assert_moved(self, run, transport, blocks):
        self.assertEqual(run.moved.transport, transport)
        self.assertEqual(run.moved.blocks_moved, blocks)
        self.assertEqual(run.moved.bytes_moved, blocks * PAGE_BYTES)
        self.assertEqual(run.moved.decode_prompt_tokens, 0)

    def test_shared_memory_moved_every_page(self):
        self.assert_moved(self.reference, 'shm', PROMPT_BLOCKS)

    def test_tcp_cold_then_warm(self):
        with cluster.Cluster('--transport', 'tcp') as one, Api(one.grpc) as api:
            cold = Run(api)
            self.assert_equal(cold)
            self.assert_moved(cold, 'tcp', PROMPT_BLOCKS)
            warm = Run(api)
            self.assert_equal(warm)
            self.assertGreaterEqual(warm.usage.cached_tokens, 512)
            # Decode holds the full blocks; whatever it lacked moved.
            self.assertLess(warm.moved.blocks_moved, PROMPT_BLOCKS)
            self.assertEqual(warm.moved.bytes_moved,
                             warm.moved.blocks_moved * PAGE_BYTES)

    def test_decode_alone(self):
        with cluster.Cluster('--local-prefill-tokens', '100000') as one:
            with Api(one.grpc) as api:
                alone = Run(api)
                self.assert_equal(alone)
                self.assertEqual(
                    [Run(api, sampling=s).result for s in SAMPLINGS],
                    self.sampled)
                self.assertNotEqual(self.sampled[0][0], alone.result[0])
                self.assertEqual(alone.moved.transport, 'local')
                self.assertEqual(alone.moved.bytes_moved, 0)
                self.assertEqual(
                    alone.moved.decode_prompt_tokens, len(PROMPT))

    def test_one_process(self):
        with cluster.Cluster('--one-process') as one, Api(one.grpc) as api:
            run = Run(api)
            self.assert_equal(run)
            self.assertEqual(run.moved.transport, 'inproc')
            self.assertEqual(run.moved.bytes_moved, 0)
            self.assertEqual(run.moved.blocks_shared, PROMPT_BLOCKS)

    def test_generated_then_prefilled_again(self):
        with cluster.Cluster() as one, Api(one.grpc) as api:
            first = Run(api)
            middle = STEPS // 2
            rest = Run(api, PROMPT + first.answer.ids[:middle],
                       STEPS - middle)
            self.assertEqual(rest.result[0], first.result[0][middle:])
            self.assertEqual(rest.result[1], first.result[1][middle:])

    def test_in_the_company_of_fifteen(self):
        # And in the smallest parts that prompts beside answers are cut into.
        with cluster.Cluster('--itl-target-ms=1') as one, Api(one.grpc) as api:
            rng = random.Random(6)
            others = [[rng.randrange(1000, 40000) for _ in range(length)]
                      for length in rng.choices((20, 64, 130, 300), k=15)]
            runs = {}

            def run(index, prompt):
                runs[index] = Run(api, prompt)

            threads = [threading.Thread(target=run, args=item)
                       for item in enumerate([PROMPT, *others])]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
            self.assertEqual(len(runs), 16)
            self.assert_equal(runs[0])

    def test_other_instruction_sets(self):
        # The reference took the best that the machine has. The scalar path is
        # slow, so the prompt is short.
        for backend in ('scalar', 'avx2'):
            with self.subTest(backend):
                with cluster.Cluster('--backend', backend) as one:
                    with Api(one.grpc) as api:
                        run = Run(api, PROMPT[:48], 3)
                        self.assertEqual(
                            run.result, self.short_reference.result)


if __name__ == '__main__':
    unittest.main()
