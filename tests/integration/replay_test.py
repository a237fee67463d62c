"""A recorded load played against a cluster: times, lengths and what was shared
are as recorded, up to what the model allows."""

import json
import tempfile
import unittest

import cluster
from api import Api

TRACE = cluster.ROOT / 'tests/data/traces/mooncake_conversation_100.jsonl'
RUN = 512  # tokens of a hash id
BLOCK = 16
REQUESTS = 12
OUTPUT = 4


def recorded():
    lines = TRACE.read_text().splitlines()[:REQUESTS]
    # The lengths of answers only cost time here.
    return [json.loads(line) | {'output_length': OUTPUT} for line in lines]


def cut(request, most):
    return min(request['input_length'], most)


def cached(requests, most):
    """Tokens of each prompt that one cache has by the time it comes, if they
    come one after the other: whole blocks, from tokens that have no names but
    their place under a hash id. The last token is always computed."""
    known = set()
    hits = []
    for request in requests:
        length = cut(request, most)
        tokens = [(request['hash_ids'][i // RUN], i % RUN)
                  for i in range(length)]
        keys = [()]
        for end in range(BLOCK, length + 1, BLOCK):
            keys.append(hash((keys[-1], *tokens[end - BLOCK:end])))
        keys.pop(0)
        hit = 0
        while hit < len(keys) and keys[hit] in known:
            hit += 1
        hits.append(min(hit * BLOCK, (length - 1) // BLOCK * BLOCK))
        known.update(keys)
    return hits


class ReplayTest(unittest.TestCase):

    def test_a_trace_is_sent_as_it_was_recorded(self):
        requests = recorded()
        with tempfile.NamedTemporaryFile(mode='w', suffix='.jsonl') as trace:
            for request in requests:
                trace.write(json.dumps(request) + '\n')
            trace.flush()
            # Steps cost time and nothing else; one worker has all there is.
            with cluster.Cluster(
                    '--backend', 'timer', '--local-prefill-tokens', '100000',
                    '--kv-memory', '4GiB') as one:
                with Api(one.grpc) as api:
                    # What the answer leaves of it.
                    most = api.call('GetModelInfo').context_length - OUTPUT
                done = cluster.penstock(
                    'bench', 'serve', '--server', one.grpc, '--json',
                    '--trace', trace.name, '--scale', '1000',
                    '--concurrency', '1', timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(done.stdout)
        lengths = [cut(request, most) for request in requests]
        self.assertEqual(summary['requests'], REQUESTS)
        self.assertEqual(summary['failed'], 0)
        self.assertEqual(summary['prompt_tokens'], sum(lengths))
        self.assertEqual(summary['output_tokens'], OUTPUT * REQUESTS)
        self.assertEqual(summary['cut'], sum(
            request['input_length'] > most for request in requests))
        self.assertAlmostEqual(summary['hit_rate'],
                               sum(cached(requests, most)) / sum(lengths))
        self.assertGreater(summary['hit_rate'], 0)
        self.assertGreater(summary['ttft_ms']['p50'], 0)


if __name__ == '__main__':
    unittest.main()
