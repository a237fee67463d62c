"""HTTP itself, as clients of all manners speak it: connections that stay open or
close as they said, clients that leave, read slowly or send too much, and the
paths beside OpenAI's own."""

import json
import os
import signal
import socket
import tempfile
import unittest
import urllib.request

import openai
import requests

import cluster
from api import Api
from chaos import Host
from cluster import total
from cluster import wait_until

MODEL = cluster.MODEL.stem
PAGE_STATES = ('active', 'in_transfer', 'quarantined')
LONG = {'model': MODEL, 'prompt': 'Count:', 'max_tokens': 4000,
        'temperature': 0, 'ignore_eos': True}


def request_text(path, body, version='1.1', *headers):
    payload = json.dumps(body).encode()
    lines = [f'POST {path} HTTP/{version}', 'Host: x',
             'Content-Type: application/json',
             f'Content-Length: {len(payload)}', *headers, '', '']
    return '\r\n'.join(lines).encode() + payload


class Raw:
    """A socket that speaks HTTP by hand."""

    def __init__(self, address, receive_buffer=None):
        host, port = address.split(':')
        self.socket = socket.socket()
        self.socket.settimeout(30)
        if receive_buffer is not None:  # of use before connecting only
            self.socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect((host, int(port)))
        self.file = self.socket.makefile('rb')

    def send(self, data):
        self.socket.sendall(data)

    def head(self):
        """(status, headers in lower case) of the next response."""
        status = int(self.file.readline().split()[1])
        headers = {}
        for line in iter(self.file.readline, b'\r\n'):
            name, value = line.decode().split(':', 1)
            headers[name.lower()] = value.strip()
        return status, headers

    def response(self):
        status, headers = self.head()
        if 'content-length' in headers:
            return status, headers, self.file.read(
                int(headers['content-length']))
        if headers.get('transfer-encoding') != 'chunked':
            return status, headers, self.file.read()
        body = b''
        while size := int(self.file.readline(), 16):
            body += self.file.read(size)
            self.file.readline()
        self.file.readline()
        return status, headers, body

    def closed_by_peer(self):
        """Whether the peer has closed in good order: no reset."""
        return self.file.read(1) == b''

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class HttpCase(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None)
        cls.url = f'http://{cls.cluster.http}'

    def raw(self, **options):
        raw = Raw(self.cluster.http, **options)
        self.addCleanup(raw.close)
        return raw

    def post(self, path, body, **more):
        return requests.post(self.url + path, json=body, timeout=60, **more)

    def at_rest(self):
        """No request runs and no page is held, on any worker."""
        page = cluster.metrics(self.cluster.metrics)
        if total(page, 'penstock_router_inflight_requests'):
            return False
        for server in self.cluster.servers.values():
            if server['role'] == 'router':
                continue
            values = cluster.metrics(server['metrics'])
            if any(total(values, 'penstock_blocks', state=state)
                   for state in PAGE_STATES):
                return False
        return True

    def settle(self):
        wait_until(self.at_rest, 30, 'no request runs and no page is held')

    def counted(self, name, **labels):
        return total(cluster.metrics(self.cluster.metrics), name, **labels)


class PathsTest(HttpCase):

    def test_health(self):
        answer = requests.get(self.url + '/health', timeout=10)
        self.assertEqual((answer.status_code, answer.json()),
                         (200, {'status': 'ok'}))

    def test_metrics_are_those_of_the_metrics_port(self):
        requests.get(self.url + '/health', timeout=10)
        with urllib.request.urlopen(self.url + '/metrics', timeout=10) as page:
            self.assertIn('version=0.0.4', page.headers['Content-Type'])
            here = page.read().decode()
        names = {line.split('{')[0].split(' ')[0] for line in here.splitlines()
                 if line and not line.startswith('#')}
        # But for what that port counts of itself.
        there = {name.split('{')[0]
                 for name in cluster.metrics(self.cluster.metrics)
                 if not name.startswith('exposer_')}
        self.assertLessEqual(there, names)
        self.assertIn('penstock_router_inflight_requests', names)
        self.assertIn('penstock_http_requests_total', names)
        self.assertIn('vllm:generation_tokens_total', names)

    def test_tokenize_and_back(self):
        text = 'Hello, wörld 😀'
        tokens = self.post('/tokenize', {'prompt': text}).json()
        with Api(self.cluster.grpc) as api:
            self.assertEqual(tokens['tokens'],
                             list(api.call('Tokenize', text=text).ids))
        self.assertEqual(tokens['count'], len(tokens['tokens']))
        self.assertEqual(tokens['max_model_len'], 8192)
        back = self.post('/detokenize', {'tokens': tokens['tokens']}).json()
        self.assertEqual(back, {'prompt': text})

    def test_tokenize_texts(self):
        tokens = self.post('/tokenize', {
            'prompt': 'Hello world', 'return_token_strs': True}).json()
        self.assertEqual(''.join(tokens['token_strs']), 'Hello world')

    def test_tokenize_messages(self):
        messages = [{'role': 'user', 'content': 'Hi'}]
        with Api(self.cluster.grpc) as api:
            ids = list(api.call('Tokenize',
                                messages={'messages': messages}).ids)
        self.assertEqual(
            self.post('/tokenize', {'messages': messages}).json()['tokens'],
            ids)

    def test_detokenize_bad_token(self):
        answer = self.post('/detokenize', {'tokens': [5, -1]})
        self.assertEqual(answer.status_code, 400)
        self.assertEqual(answer.json()['error']['param'], 'tokens[1]')

    def test_unknown_path(self):
        answer = requests.get(self.url + '/v2/models', timeout=10)
        self.assertEqual(answer.status_code, 404)
        self.assertIn('/v1/models', answer.json()['error']['message'])

    def test_wrong_method(self):
        answer = requests.get(self.url + '/v1/completions', timeout=10)
        self.assertEqual(answer.status_code, 405)
        self.assertEqual(answer.headers['Allow'], 'POST, OPTIONS')
        answer = requests.options(self.url + '/v1/models', timeout=10)
        self.assertEqual((answer.status_code, answer.headers['Allow']),
                         (204, 'GET, HEAD, OPTIONS'))

    def test_head(self):
        answer = requests.head(self.url + '/v1/models', timeout=10)
        self.assertEqual((answer.status_code, answer.content), (200, b''))
        self.assertGreater(int(answer.headers['Content-Length']), 0)

    def test_other_content_type_refused(self):
        answer = requests.post(
            self.url + '/v1/completions', data='{"prompt":"x"}', timeout=10,
            headers={'Content-Type': 'text/plain'})
        self.assertEqual(answer.status_code, 415)

    def test_broken_json(self):
        for body in ('', '[]', '{', '{"prompt": "x",}', '{"a": 1, "a": 2}',
                     '{"prompt": "\\ud800"}', '[' * 1000, 'nul'):
            answer = requests.post(
                self.url + '/v1/completions', data=body, timeout=10,
                headers={'Content-Type': 'application/json'})
            self.assertEqual(answer.status_code, 400, body)
            error = answer.json()['error']
            self.assertEqual(error['type'], 'invalid_request_error')
            self.assertIn('JSON', error['message'])

    def test_request_id_that_cannot_be_is_replaced(self):
        answer = requests.get(self.url + '/health', timeout=10,
                              headers={'x-request-id': 'a b'})
        self.assertNotIn(' ', answer.headers['x-request-id'])


class ConnectionTest(HttpCase):

    BODY = {'prompt': 'Once', 'max_tokens': 2, 'temperature': 0}

    def test_keep_alive_is_kept_and_announced(self):
        raw = self.raw()
        for _ in range(3):
            raw.send(request_text('/v1/completions', self.BODY))
            status, headers, body = raw.response()
            self.assertEqual(status, 200, body)
            self.assertEqual(headers['connection'], 'keep-alive')
            self.assertEqual(headers['keep-alive'], 'timeout=70')

    def test_streams_keep_the_connection_too(self):
        raw = self.raw()
        for _ in range(2):
            raw.send(request_text('/v1/completions',
                                  {**self.BODY, 'stream': True}))
            status, headers, body = raw.response()
            self.assertEqual(status, 200)
            self.assertEqual(headers['content-type'],
                             'text/event-stream; charset=utf-8')
            self.assertEqual(headers['connection'], 'keep-alive')
            events = body.decode().split('\n\n')
            self.assertEqual(events[-2:], ['data: [DONE]', ''])
            for event in events[:-2]:
                self.assertEqual(json.loads(event.removeprefix('data: '))
                                 ['object'], 'text_completion')

    def test_close_is_announced_and_done(self):
        raw = self.raw()
        raw.send(request_text('/v1/completions', self.BODY, '1.1',
                              'Connection: close'))
        status, headers, _ = raw.response()
        self.assertEqual((status, headers['connection']), (200, 'close'))
        self.assertTrue(raw.closed_by_peer())

    def test_http_1_0(self):
        raw = self.raw()
        raw.send(request_text('/v1/completions',
                              {**self.BODY, 'stream': True}, '1.0'))
        status, headers, body = raw.response()
        self.assertEqual((status, headers['connection']), (200, 'close'))
        self.assertNotIn('transfer-encoding', headers)
        self.assertTrue(body.endswith(b'data: [DONE]\n\n'))

    def test_pipelined_requests_are_answered_in_order(self):
        raw = self.raw()
        raw.send(b''.join(
            request_text('/tokenize', {'prompt': 'a ' * n}) for n in (1, 5, 9)))
        counts = [json.loads(raw.response()[2])['count'] for _ in range(3)]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual(len(set(counts)), 3)

    def test_chunked_body(self):
        def pieces():
            yield b'{"prompt": "On'
            yield b'ce", "max_tokens": 1}'
        answer = requests.post(
            self.url + '/v1/completions', data=pieces(), timeout=30,
            headers={'Content-Type': 'application/json'})
        self.assertEqual(answer.status_code, 200)

    def test_expect_continue(self):
        raw = self.raw()
        head, body = request_text(
            '/v1/completions', self.BODY, '1.1',
            'Expect: 100-continue').split(b'\r\n\r\n')
        raw.send(head + b'\r\n\r\n')
        self.assertEqual(raw.head()[0], 100)
        raw.send(body)
        self.assertEqual(raw.response()[0], 200)

    def test_large_body_refused_before_it_is_sent(self):
        raw = self.raw()
        raw.send(b'POST /v1/completions HTTP/1.1\r\nHost: x\r\n'
                 b'Content-Length: 999999999\r\n\r\n')
        status, headers, _ = raw.response()
        self.assertEqual((status, headers['connection']), (413, 'close'))
        self.assertTrue(raw.closed_by_peer())

    def test_large_body_gets_its_answer_while_it_is_sent(self):
        answer = requests.post(
            self.url + '/v1/completions', data=b' ' * (8 << 20), timeout=30,
            headers={'Content-Type': 'application/json'})
        self.assertEqual(answer.status_code, 413)
        self.assertEqual(answer.json()['error']['code'], 'body_too_large')

    def test_large_headers_refused(self):
        raw = self.raw()
        raw.send(b'GET /health HTTP/1.1\r\nX: ' + b'x' * (20 << 10) + b'\r\n\r\n')
        self.assertEqual(raw.response()[0], 431)
        self.assertTrue(raw.closed_by_peer())

    def test_not_http(self):
        raw = self.raw()
        raw.send(b'\x16\x03\x01 hello\r\n\r\n')
        self.assertEqual(raw.response()[0], 400)
        self.assertTrue(raw.closed_by_peer())

    def test_two_lengths_refused(self):
        raw = self.raw()
        raw.send(b'POST /tokenize HTTP/1.1\r\nContent-Length: 5\r\n'
                 b'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n')
        self.assertEqual(raw.response()[0], 400)

    def test_client_that_leaves_frees_both_workers(self):
        self.settle()
        before = self.counted('penstock_http_requests_total', code='499')
        prompt = [100 + i % 4000 for i in range(600)]
        for stream in (True, False):
            raw = self.raw()
            raw.send(request_text('/v1/completions', {
                **LONG, 'prompt': prompt, 'stream': stream}))
            if stream:
                self.assertEqual(raw.head()[0], 200)
                self.assertIn(b'data:', raw.file.read(200))
            else:
                wait_until(
                    lambda: self.counted('penstock_router_inflight_requests'),
                    30, 'it runs')
            raw.close()
            self.settle()
        self.assertEqual(
            self.counted('penstock_http_requests_total', code='499'),
            before + 2)

    def test_reset_frees_both_workers(self):
        raw = self.raw()
        raw.send(request_text('/v1/completions', {**LONG, 'stream': True}))
        self.assertEqual(raw.head()[0], 200)
        # Closing with this option sends a reset.
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                              b'\1\0\0\0\0\0\0\0')
        raw.close()
        self.settle()

    def test_sdk_that_stops_reading_frees_both_workers(self):
        with requests.post(self.url + '/v1/completions', stream=True,
                           json={**LONG, 'stream': True}, timeout=30) as answer:
            self.assertTrue(next(answer.iter_lines()))
        self.settle()


class LimitsTest(HttpCase):
    """A router with small limits."""

    @classmethod
    def setUpClass(cls):
        config = tempfile.NamedTemporaryFile('w', suffix='.txtpb')
        cls.addClassCleanup(config.close)
        config.write('version: 1 http { max_connections: 4 '
                     'max_queued_bytes: 20000 idle_timeout_ms: 1500 '
                     'header_timeout_ms: 700 body_timeout_ms: 700 }')
        config.flush()
        cls.cluster = cluster.Cluster('--router-config', config.name)
        cls.addClassCleanup(cls.cluster.__exit__, None)
        cls.url = f'http://{cls.cluster.http}'

    def setUp(self):
        wait_until(lambda: not self.counted('penstock_http_connections'), 30,
                   'no connection is open')

    def test_slow_header_is_timed_out(self):
        raw = self.raw()
        raw.send(b'GET /health HT')
        status, headers, _ = raw.response()
        self.assertEqual((status, headers['connection']), (408, 'close'))
        self.assertTrue(raw.closed_by_peer())

    def test_slow_body_is_timed_out(self):
        raw = self.raw()
        raw.send(request_text('/tokenize', {'prompt': 'x' * 100})[:-50])
        self.assertEqual(raw.response()[0], 408)
        self.assertTrue(raw.closed_by_peer())

    def test_idle_connection_closes_in_good_order(self):
        raw = self.raw()
        raw.send(b'GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
        status, headers, _ = raw.response()
        self.assertEqual((status, headers['keep-alive']), (200, 'timeout=1'))
        self.assertTrue(raw.closed_by_peer())

    def test_pooled_client_sees_no_reset(self):
        with requests.Session() as session:
            for _ in range(2):
                for _ in range(3):
                    self.assertEqual(
                        session.get(self.url + '/health', timeout=10)
                        .status_code, 200)
                wait_until(
                    lambda: not self.counted('penstock_http_connections'), 30,
                    'the idle connection has closed')

    def test_too_many_connections_are_told_so(self):
        raws = [self.raw() for _ in range(4)]
        for raw in raws:
            raw.send(b'GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
            self.assertEqual(raw.response()[0], 200)
        more = self.raw()
        status, headers, _ = more.response()
        self.assertEqual((status, headers['connection']), (503, 'close'))
        for raw in raws:
            raw.send(b'GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
            self.assertEqual(raw.response()[0], 200)

    def test_slow_reader_is_cut_off(self):
        raw = self.raw(receive_buffer=4096)
        before = self.counted('penstock_http_connections_cut_total',
                              reason='slow_reader')
        # Events of many alternatives, so that what waits is much soon.
        raw.send(request_text('/v1/completions', {
            **LONG, 'stream': True, 'logprobs': 20}))
        wait_until(
            lambda: self.counted('penstock_http_connections_cut_total',
                                 reason='slow_reader') > before,
            60, 'it is cut off')
        self.settle()


class EndsTest(unittest.TestCase):

    def test_a_stream_whose_workers_stay_away_ends_with_an_error(self):
        host = Host(kv_memory='160MiB')
        self.addCleanup(host.close)
        host.start()
        wait_until(host.all_ready, 60, 'all workers are ready')
        url = f'http://{host.router.http}'
        client = openai.OpenAI(base_url=f'{url}/v1', api_key='none',
                               max_retries=0, timeout=60)
        self.addCleanup(client.close)
        stream = client.completions.create(
            model=MODEL, prompt='Count:', max_tokens=4000, temperature=0,
            stream=True, extra_body={'ignore_eos': True})
        next(stream)
        for name in host.of_role('decode'):
            host.servers[name].kill()
        with self.assertRaises(openai.APIError) as caught:
            for _ in stream:
                pass
        self.assertEqual(caught.exception.code, 'worker_lost')
        wait_until(lambda: requests.get(url + '/health', timeout=10)
                   .status_code == 503, 30, 'nobody decodes')
        refused = requests.post(url + '/v1/completions', timeout=60,
                                json={'prompt': 'x'})
        self.assertEqual((refused.status_code,
                          refused.json()['error']['code']),
                         (503, 'no_workers'))

    def test_stream_ends_well_and_new_requests_are_refused(self):
        with cluster.Cluster() as one:
            url = f'http://{one.http}'
            with requests.post(url + '/v1/completions', stream=True, timeout=60,
                               json={**LONG, 'stream': True,
                                     'max_tokens': 400}) as answer:
                lines = answer.iter_lines()
                self.assertTrue(next(lines))
                os.kill(one.servers['router']['pid'], signal.SIGTERM)
                wait_until(
                    lambda: requests.get(url + '/health', timeout=10)
                    .status_code == 503, 30, 'it drains')
                refused = requests.post(url + '/v1/completions', timeout=10,
                                        json={'prompt': 'x'})
                self.assertEqual(refused.status_code, 503)
                self.assertEqual(refused.json()['error']['code'], 'draining')
                self.assertEqual(refused.headers['Connection'], 'close')
                self.assertEqual(refused.headers['x-should-retry'], 'true')
                self.assertEqual([line for line in lines if line][-1],
                                 b'data: [DONE]')


if __name__ == '__main__':
    unittest.main()
