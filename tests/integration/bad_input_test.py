"""What bad input gets: a clear error with a stable reason, and everything else
keeps running."""

import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import grpc

import cluster
from api import Api
from cluster import total
from cluster import wait_until

CONTEXT = 8192
INVALID = grpc.StatusCode.INVALID_ARGUMENT


class BadRequestTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None)
        cls.api = Api(cls.cluster.grpc)
        cls.addClassCleanup(cls.api.close)

    def tearDown(self):
        # Whatever the test sent, the next request is served.
        answer = self.api.answer(
            text='Hello', sampling={'temperature': 0}, stop={'max_tokens': 2})
        self.assertEqual(len(answer.ids), 2)

    def assert_fails(self, code, reason, field=None, **fields):
        failure = self.api.failure(**fields)
        self.assertEqual((failure.code, failure.reason), (code, reason),
                         failure)
        self.assertTrue(failure.message)
        if field is not None:
            self.assertEqual(failure.field, field, failure)

    def test_empty_prompt(self):
        self.assert_fails(INVALID, 'PROMPT_EMPTY', text='')
        self.assert_fails(INVALID, 'PROMPT_EMPTY', ids={'ids': []})
        self.assert_fails(INVALID, 'PROMPT_EMPTY')

    def test_prompt_over_the_context(self):
        self.assert_fails(INVALID, 'PROMPT_TOO_LONG',
                          ids={'ids': [100] * (CONTEXT + 1)})

    def test_unknown_model(self):
        self.assert_fails(grpc.StatusCode.NOT_FOUND, 'MODEL_NOT_FOUND',
                          model='no-such-model', text='Hello')

    def test_sampling_out_of_range(self):
        for field, value in (('temperature', -1.0), ('temperature', 1e9),
                             ('temperature', float('nan')), ('top_p', 0.0),
                             ('top_p', 1.5), ('top_k', -1),
                             ('logprobs', 1000), ('logprobs', -2),
                             ('min_p', 1.1), ('typical_p', 0.0),
                             ('top_n_sigma', float('inf')),
                             ('repetition_penalty', 0.0),
                             ('presence_penalty', float('nan')),
                             ('frequency_penalty', 101.0),
                             ('penalty_window', -2), ('dry_multiplier', -1.0),
                             ('dry_base', 0.5), ('dry_allowed_length', 0),
                             ('dry_range', -2), ('xtc_probability', 2.0),
                             ('xtc_threshold', -0.1), ('mirostat_tau', 0.0),
                             ('mirostat_eta', 0.0), ('allowed_tokens', [49152]),
                             ('stages', ['SAMPLER_STAGE_TOP_K'] * 2)):
            with self.subTest(field=field, value=value):
                self.assert_fails(INVALID, 'INVALID_FIELD',
                                  f'sampling.{field}', text='Hello',
                                  sampling={field: value})

    def test_stop_out_of_range(self):
        for field, value in (('max_tokens', 0), ('max_tokens', -5),
                             ('strings', ['']), ('strings', ['x'] * 100),
                             ('strings', ['x' * 10000])):
            with self.subTest(field=field):
                failure = self.api.failure(text='Hello', stop={field: value})
                self.assertEqual(
                    (failure.code, failure.reason), (INVALID, 'INVALID_FIELD'))
                self.assertTrue(failure.field.startswith('stop.'), failure)

    def test_ids_outside_the_vocabulary(self):
        for token_id in (-1, 49152, 2**31 - 1):
            failure = self.api.failure(ids={'ids': [token_id]})
            self.assertEqual(
                (failure.code, failure.reason), (INVALID, 'INVALID_FIELD'))

    def test_what_is_not_built_is_named(self):
        for fields, name in (({'constraint': {'regex': 'a*'}}, 'constraint'),
                             ({'adapter': 'x'}, 'adapter')):
            failure = self.api.failure(text='Hello', **fields)
            self.assertEqual(failure.code, grpc.StatusCode.UNIMPLEMENTED)
            self.assertEqual(failure.reason, 'FIELD_NOT_IMPLEMENTED')
            self.assertIn(name, failure.field)

    def test_prompt_that_is_no_utf8(self):
        # By hand: client libraries refuse to make it. Field 2 is `text`.
        call = self.api.generate(request=b'\x12\x03a\xff\xfe')
        with self.assertRaises(grpc.RpcError) as failed:
            list(call)
        failure = self.api.describe(failed.exception)
        self.assertEqual((failure.code, failure.reason),
                         (INVALID, 'PROMPT_NOT_UTF8'), failure)

    def test_deadline(self):
        failure = self.api.failure(
            text='Count:', timeout_ms=300,
            stop={'max_tokens': 8000, 'ignore_eos': True})
        self.assertEqual((failure.code, failure.reason),
                         (grpc.StatusCode.DEADLINE_EXCEEDED, 'DEADLINE'))

    def test_garbage_on_the_port(self):
        host, port = self.cluster.grpc.rsplit(':', 1)
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(b'\0\xffnot http at all\r\n' * 100)

    def test_vanished_client(self):
        client = subprocess.Popen(
            [str(cluster.BIN / 'penstock'), 'generate', '--server',
             self.cluster.grpc, '--max-tokens', '8000', '--ignore-eos',
             'Count to a million:'],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertTrue(client.stdout.read(1))  # it is being served
        client.send_signal(signal.SIGKILL)
        client.wait(10)
        client.stdout.close()
        wait_until(self.nothing_runs, 30, 'the request of a dead client ends')

    def nothing_runs(self):
        return all(
            total(cluster.metrics(server['metrics']),
                  'penstock_blocks', state='active') == 0
            for server in self.cluster.servers.values()
            if server['role'] != 'router')


class SmallMemoryTest(unittest.TestCase):

    def test_request_that_never_fits(self):
        # A block of this model is 360 KiB: 8 MiB hold 22 blocks, 352 tokens.
        with cluster.Cluster('--kv-memory', '8MiB') as small:
            with Api(small.grpc) as api:
                failure = api.failure(ids={'ids': [100] * 600})
                self.assertEqual(
                    (failure.code, failure.reason),
                    (grpc.StatusCode.RESOURCE_EXHAUSTED, 'KV_TOO_SMALL'),
                    failure)
                self.assertFalse(failure.retryable)
                answer = api.answer(ids={'ids': [100] * 100},
                                    stop={'max_tokens': 3, 'ignore_eos': True})
                self.assertEqual(len(answer.ids), 3)


class BadStartTest(unittest.TestCase):
    """Servers that cannot start say why in a line and exit."""

    def assert_up_fails(self, model, *words, flags=()):
        done = cluster.penstock('up', model, *flags)
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(done.stdout, '')
        last = done.stderr.strip().splitlines()[-1]
        for word in words:
            self.assertIn(word, last)

    def test_broken_models(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / 'bad.gguf'
            whole = cluster.MODEL.read_bytes()
            for contents, word in ((b'', 'bad.gguf'), (b'GGUF', 'bad.gguf'),
                                   (whole[:1 << 20], 'bad.gguf'),
                                   (whole[:-1], 'bad.gguf'),
                                   (b'XXXX' + whole[4:64], 'magic')):
                bad.write_bytes(contents)
                self.assert_up_fails(bad, word)
        self.assert_up_fails('nowhere.gguf', 'nowhere.gguf')

    def test_each_server_names_a_broken_model(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / 'bad.gguf'
            bad.write_bytes(b'GGUF\3\0\0\0')
            for name in ('router', 'prefill', 'decode'):
                done = subprocess.run(
                    [str(cluster.BIN / f'penstock-{name}'), '--model', bad,
                     '--grpc', '127.0.0.1:0', '--metrics', '127.0.0.1:0'],
                    capture_output=True, text=True, timeout=30, check=False)
                self.assertNotIn(done.returncode, (0, -6, -11), done)
                self.assertIn('bad.gguf', done.stderr)

    def test_taken_port(self):
        with socket.socket() as taken:
            taken.bind(('127.0.0.1', 0))
            taken.listen()
            address = f'127.0.0.1:{taken.getsockname()[1]}'
            self.assert_up_fails(
                cluster.MODEL, address,
                flags=('--grpc', address, '--http', '127.0.0.1:0'))
            self.assert_up_fails(
                cluster.MODEL, address,
                flags=('--grpc', '127.0.0.1:0', '--http', address))

    def test_bad_kv_memory(self):
        for size in ('lots', '-1', '1KiB'):
            done = cluster.penstock(
                'up', cluster.MODEL, '--grpc', '127.0.0.1:0', '--http',
                '127.0.0.1:0', '--kv-memory', size)
            self.assertIn(done.returncode, (1, 2), done)
            self.assertIn('kv', done.stderr.lower())

    def test_missing_server_binary(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = pathlib.Path(folder) / 'penstock'
            shutil.copy(cluster.BIN / 'penstock', alone)
            done = subprocess.run(
                [str(alone), 'up', cluster.MODEL], capture_output=True,
                text=True, timeout=30, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn('penstock-router', done.stderr)


if __name__ == '__main__':
    unittest.main()
