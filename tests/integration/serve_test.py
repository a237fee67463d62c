"""A client made from reflection alone, against a router, a prefill and a
decode worker in processes of their own."""

import json
import unittest

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1 import health_pb2_grpc

import cluster
from api import SERVICE
from api import Api


def all_cases():
    with open(cluster.CASES / 'generation.jsonl', encoding='ascii') as file:
        return [json.loads(line) for line in file]


class ServeTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None)
        cls.api = Api(cls.cluster.grpc)
        cls.addClassCleanup(cls.api.close)

    def greedy(self, found, steps):
        return self.api.answer(
            ids={'ids': found['prompt_ids']},
            sampling={'temperature': 0, 'logprobs': 1},
            stop={'max_tokens': steps})

    def test_recorded_generations(self):
        for found in all_cases():
            # Up to the first step that quantised activations may decide
            # otherwise.
            steps = min(found['robust_len_q8'], 24)
            if steps < 2:
                continue
            with self.subTest(found['name']):
                answer = self.greedy(found, steps)
                self.assertEqual(answer.ids, found['gen_ids'][:steps])
                self.assertEqual(
                    answer.last.usage.prompt_tokens, found['n_prompt'])
                self.assertEqual(answer.last.usage.completion_tokens, steps)
                self.assertEqual(len(answer.logprobs), steps)

    def test_long_prompt_goes_from_prefill_to_decode(self):
        prompt = [100 + i % 4000 for i in range(600)]
        answer = self.api.answer(
            ids={'ids': prompt}, sampling={'temperature': 0},
            stop={'max_tokens': 8, 'ignore_eos': True})
        self.assertEqual(len(answer.ids), 8)
        self.assertTrue(answer.placement.prefill)
        self.assertTrue(answer.placement.decode)
        self.assertNotEqual(answer.placement.prefill, answer.placement.decode)
        self.assertIn(answer.last.transfer.transport, ('shm', 'tcp'))
        self.assertEqual(answer.last.transfer.decode_prompt_tokens, 0)
        # 600 tokens are 38 blocks; K and V of 30 layers x 3 heads x 64 in F16.
        page = 2 * 30 * 3 * 64 * 2 * 16
        self.assertEqual(answer.last.transfer.blocks_moved, 38)
        self.assertEqual(answer.last.transfer.bytes_moved, 38 * page)

    def test_text_and_chat_stream_characters(self):
        frames = []
        for response in self.api.generate(
                messages={'messages': [
                    {'role': 'user', 'content': 'Say hello to the world.'}]},
                sampling={'temperature': 0}, stop={'max_tokens': 24}):
            frames.append(response.frame)
        self.assertGreater(len(frames), 2)
        text = ''.join(token.text for frame in frames for token in frame.tokens)
        self.assertTrue(text.strip())
        self.assertNotIn('<|im_end|>', text)

    def test_stop_string_never_leaks(self):
        found = all_cases()[0]
        whole = self.greedy(found, 24).text
        stop = whole[8:11]
        answer = self.api.answer(
            ids={'ids': found['prompt_ids']}, sampling={'temperature': 0},
            stop={'max_tokens': 24, 'strings': [stop]})
        self.assertEqual(answer.text, whole[:whole.index(stop)])
        self.assertEqual(answer.last.finish, 1)  # FINISH_REASON_STOP

    def test_seed_repeats(self):
        def draw(seed):
            return self.api.answer(
                text='Once upon a time', sampling={'temperature': 1,
                                                   'seed': seed},
                stop={'max_tokens': 12}).ids
        self.assertEqual(draw(7), draw(7))
        self.assertNotEqual(draw(7), draw(8))

    def ask_many(self, salt, **fields):
        prompt = [100 + (i * 37 + salt) % 4000 for i in range(500)]
        answers, scores = self.api.answers(
            ids={'ids': prompt}, stop={'max_tokens': 8, 'ignore_eos': True},
            **fields)
        last = [a.last for a in answers if a.last.usage.prompt_tokens]
        self.assertEqual(len(last), 1)  # usage comes once, with the very last
        return answers, scores, last[0]

    # Of a prompt seen for the first time: its pages travel once, whatever the
    # number of answers. K and V of 30 layers x 3 heads x 64 in F16.
    def expect_one_transfer(self, last):
        page = 2 * 30 * 3 * 64 * 2 * 16
        self.assertEqual(last.transfer.blocks_moved, 32)
        self.assertEqual(last.transfer.bytes_moved, 32 * page)
        self.assertEqual(last.transfer.decode_prompt_tokens, 0)

    def test_samples_share_the_prompt(self):
        sampling = {'temperature': 1, 'seed': 11}
        answers, _, last = self.ask_many(1, n=4, sampling=sampling)
        self.expect_one_transfer(last)
        self.assertEqual(len(answers), 4)
        self.assertEqual(len({tuple(a.ids) for a in answers}), 4)
        self.assertEqual(last.usage.completion_tokens, 4 * 8)
        again, _, _ = self.ask_many(1, n=4, sampling=sampling)
        self.assertEqual([a.ids for a in again], [a.ids for a in answers])

    def test_best_of_is_the_likeliest_of_as_many(self):
        sampling = {'temperature': 1, 'seed': 12, 'logprobs': 0}
        made, _, _ = self.ask_many(2, n=4, sampling=sampling)
        made.sort(key=lambda a: -sum(a.logprobs) / len(a.logprobs))
        best, _, last = self.ask_many(
            2, n=2, best_of=4, sampling=sampling)
        self.assertEqual([a.ids for a in best], [a.ids for a in made[:2]])
        self.assertEqual(last.usage.completion_tokens, 4 * 8)

    def test_beams_are_no_worse_than_greedy(self):
        beams, _, last = self.ask_many(
            3, n=2, beam={'width': 4}, sampling={'logprobs': 0})
        greedy, _, _ = self.ask_many(
            3, sampling={'temperature': 0, 'logprobs': 0})
        self.expect_one_transfer(last)
        sums = [sum(a.logprobs) for a in beams]
        self.assertEqual(len(beams), 2)
        self.assertGreaterEqual(sums[0], sums[1])
        self.assertGreaterEqual(sums[0], sum(greedy[0].logprobs))

    def test_prompt_logprobs(self):
        _, first, _ = self.ask_many(4, prompt_logprobs=2)
        self.assertEqual(len(first), 499)
        for token in first:
            self.assertEqual(len(token.top), 2)
            self.assertLess(token.logprob, 0)
            self.assertLessEqual(token.logprob, token.top[0].logprob)
        # Cached by now, and computed all the same.
        _, second, last = self.ask_many(4, prompt_logprobs=2)
        self.assertEqual(second, first)
        self.assertEqual(last.usage.cached_tokens, 0)

    def test_reflection_and_health(self):
        self.assertIn(SERVICE, self.api.services())
        self.assertIn('grpc.health.v1.Health', self.api.services())
        health = health_pb2_grpc.HealthStub(self.api.channel)
        for service in ('', SERVICE):
            self.assertEqual(
                health.Check(health_pb2.HealthCheckRequest(service=service),
                             timeout=10).status,
                health_pb2.HealthCheckResponse.SERVING)
        with self.assertRaises(grpc.RpcError) as unknown:
            health.Check(health_pb2.HealthCheckRequest(service='none'),
                         timeout=10)
        self.assertEqual(unknown.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_tokenize_and_detokenize(self):
        text = 'Häagen-Dazs 東京 🎉'
        ids = self.api.call('Tokenize', text=text).ids
        self.assertEqual(self.api.call('Detokenize', ids=ids).text, text)

    def test_model_info(self):
        info = self.api.call('GetModelInfo')
        self.assertEqual(info.vocab_size, 49152)
        self.assertEqual(info.prefill_workers, 1)
        self.assertEqual(info.decode_workers, 1)
        self.assertTrue(info.has_chat_template)

    def test_request_id_is_echoed_in_headers(self):
        call = self.api.generate(
            text='Hello', stop={'max_tokens': 1},
            metadata=(('x-request-id', 'from-a-test'),))
        headers = dict(call.initial_metadata())
        list(call)
        self.assertEqual(headers.get('x-request-id'), 'from-a-test')

    def test_abort_ends_a_running_call(self):
        call = self.api.generate(
            text='Count to a million:', request_id='long',
            stop={'max_tokens': 4000, 'ignore_eos': True})
        next(call)
        self.assertEqual(self.api.call('Abort', request_id='long').aborted, 1)
        with self.assertRaises(grpc.RpcError) as ended:
            for _ in call:
                pass
        self.assertEqual(ended.exception.code(), grpc.StatusCode.CANCELLED)
        self.assertEqual(self.api.call('Abort', request_id='long').aborted, 0)

    def test_command_prints_the_promised_fields(self):
        done = cluster.penstock(
            'generate', '--server', self.cluster.grpc, '--json',
            '--temperature', '0', '--max-tokens', '4', '--logprobs', '2',
            'The capital of France is')
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        choice, = document['choices']
        self.assertEqual(len(choice['token_ids']), 4)
        self.assertEqual(choice['finish_reason'], 'length')
        for token_id, entry in zip(choice['token_ids'], choice['logprobs']):
            self.assertEqual(entry['id'], token_id)
            self.assertEqual(len(entry['top']), 2)
            self.assertEqual(entry['top'][0], {
                'id': token_id, 'logprob': entry['logprob']})
        self.assertEqual(document['usage']['completion_tokens'], 4)
        for group, names in {
                'timings_ms': ('queue', 'prefill', 'transfer', 'first_token',
                               'decode'),
                'placement': ('prefill', 'decode', 'transport', 'bytes_moved'),
        }.items():
            for name in names:
                self.assertIn(name, document[group])

    def test_command_streams_frames(self):
        done = cluster.penstock(
            'generate', '--server', self.cluster.grpc, '--stream-json',
            '--temperature', '0', '--max-tokens', '4', '--ignore-eos', '-',
            stdin='Once')
        self.assertEqual(done.returncode, 0, done.stderr)
        frames = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(
            sum(len(frame['tokens']) for frame in frames), 4)
        self.assertEqual(frames[-1]['finish_reason'], 'length')

    def test_bench_serve_counts_its_requests(self):
        done = cluster.penstock(
            'bench', 'serve', '--server', self.cluster.grpc, '--json',
            '--requests', '6', '--concurrency', '3', '--input-len', '40',
            '--output-len', '5')
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document['requests'], 6)
        self.assertEqual(document['failed'], 0)
        self.assertEqual(document['output_tokens'], 30)
        for name in ('ttft_ms', 'itl_ms', 'tpot_ms', 'e2e_ms'):
            self.assertLessEqual(document[name]['p50'], document[name]['p99'])


if __name__ == '__main__':
    unittest.main()
