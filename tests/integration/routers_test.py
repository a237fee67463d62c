"""Two routers over the same workers: one is killed, and its clients go to the
other with the id of their request."""

import json
import tempfile
import unittest

import grpc
import requests

from api import Answer
from api import Api
from cluster import metrics
from cluster import total
from cluster import wait_until
from fault_load import CHANNEL
from fault_load import MODEL
from servers import Server

READY_S = 60
# Neither a multiple of a block nor of a chunk.
PROMPT = [100 + i * 7 % 3000 for i in range(1500)]
CHUNK = 256
# The prompt's last block is not full, so that nobody finds it; prefill and
# decode may each compute it.
TAIL = 2 * 16


class RoutersTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        # Workers and routers know each other's blocks by a key in common.
        key = tempfile.NamedTemporaryFile(mode='w', suffix='.key')
        cls.addClassCleanup(key.close)
        key.write('the key of one test')
        key.flush()
        common = ('--cluster-key-file', key.name)
        cls.routers = [Server(f'router-{i}', 'router', *common, http=True)
                       for i in range(2)]
        known = ['--router', ','.join(r.grpc for r in cls.routers)]
        cls.workers = [
            Server(f'{role}-{i}', role, *common, *known, '--threads', 1,
                   '--host-workers', 4, '--kv-memory', '128MiB')
            for role in ('prefill', 'decode') for i in range(2)]
        for server in (*cls.routers, *cls.workers):
            cls.addClassCleanup(server.close)
            server.start()
        for server in (*cls.routers, *cls.workers):
            server.wait_started()

    def setUp(self):
        self.apis = []
        for router in self.routers:
            self.wait_ready(router)
            api = Api(router.grpc, CHANNEL)
            self.addCleanup(api.close)
            api.learn()
            self.apis.append(api)

    def wait_ready(self, router):
        def ready():
            page = metrics(router.metrics)
            return total(page, 'penstock_worker_up') == len(self.workers)
        wait_until(ready, READY_S, f'{router.name} knows all workers')

    def rows(self):
        """Prompt tokens that workers have computed so far."""
        return sum(total(metrics(worker.metrics),
                         'penstock_worker_prefill_rows_total')
                   for worker in self.workers)

    def ask(self, request_id, salt):
        # Without a seed: it follows from the id.
        return {'ids': {'ids': PROMPT}, 'sampling': {'temperature': 0.9},
                'stop': {'max_tokens': 200, 'ignore_eos': True},
                'request_id': request_id, 'cache_salt': salt}

    def kill_first_router(self):
        self.assertTrue(self.routers[0].kill())

        def start_again():
            self.routers[0].start()
            self.routers[0].wait_started()
        self.addCleanup(start_again)

    def test_a_retry_with_the_id_pays_the_prompt_once(self):
        right = self.apis[1].answer(**self.ask('by grpc', 'undisturbed'))
        before = self.rows()
        answer = Answer()
        with self.assertRaises(grpc.RpcError) as caught:
            for response in self.apis[0].generate(**self.ask('by grpc', 'x')):
                answer.add(response)
                if len(answer.ids) == 20:
                    self.kill_first_router()
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertLess(len(answer.ids), 200)
        again = self.apis[1].answer(**self.ask('by grpc', 'x'))
        self.assertEqual(again.request_id, 'by grpc')
        self.assertEqual(again.ids, right.ids)
        self.assertEqual(answer.ids, right.ids[:len(answer.ids)])
        self.assertLessEqual(self.rows() - before, len(PROMPT) + TAIL)
        self.assertGreaterEqual(self.rows() - before, len(PROMPT))

    def test_a_retry_amid_the_prompt_goes_on_with_it(self):
        right = self.apis[1].answer(**self.ask('early', 'undisturbed'))
        before = self.rows()
        call = self.apis[0].generate(**self.ask('early', 'y'))
        wait_until(lambda: self.rows() > before, READY_S, 'a chunk is computed')
        self.kill_first_router()
        with self.assertRaises(grpc.RpcError):
            list(call)
        again = self.apis[1].answer(**self.ask('early', 'y'))
        self.assertEqual(again.ids, right.ids)
        # What was being computed when the router died is lost at most, and what
        # its worker began before it heard of that.
        self.assertLessEqual(self.rows() - before,
                             len(PROMPT) + 2 * CHUNK + TAIL)

    def test_a_retry_over_http(self):
        def ask(router, salt):
            return requests.post(
                f'http://{router.http}/v1/completions', stream=True,
                timeout=READY_S, headers={'X-Request-Id': 'by-http'},
                json={'model': MODEL, 'prompt': PROMPT, 'max_tokens': 100,
                      'ignore_eos': True, 'stream': True, 'cache_salt': salt,
                      'return_token_ids': True})

        def ids(response, on_ids=lambda count: None):
            got = []
            try:
                for line in response.iter_lines():
                    if not line.startswith(b'data: {'):
                        continue
                    for choice in json.loads(line[6:])['choices']:
                        got += choice.get('token_ids') or []
                    on_ids(len(got))
            except requests.RequestException:
                pass  # as when its router is killed
            return got

        def kill_once(count):
            if count >= 10 and self.routers[0].running():
                self.kill_first_router()
        right = ids(ask(self.routers[1], 'undisturbed'))
        self.assertEqual(len(right), 100)
        before = self.rows()
        some = ids(ask(self.routers[0], 'z'), kill_once)
        self.assertLess(len(some), 100)
        again = ask(self.routers[1], 'z')
        self.assertEqual(again.headers['x-request-id'], 'by-http')
        self.assertEqual(ids(again), right)
        self.assertEqual(some, right[:len(some)])
        self.assertLessEqual(self.rows() - before, len(PROMPT) + TAIL)

    def test_both_know_what_the_other_had_cached(self):
        fields = self.ask('first', 'known to all')
        fields['stop']['max_tokens'] = 2
        self.apis[0].answer(**fields)

        def cached():
            return self.apis[1].answer(**fields).last.usage.cached_tokens
        # It may take a heartbeat.
        wait_until(lambda: cached() >= len(PROMPT) - TAIL, READY_S,
                   'the other router finds the prompt')
        # One that has just started is told by snapshot.
        self.assertTrue(self.routers[0].kill())
        self.routers[0].start()
        self.routers[0].wait_started()
        self.wait_ready(self.routers[0])
        with Api(self.routers[0].grpc, CHANNEL) as api:
            wait_until(lambda: api.answer(**fields).last.usage.cached_tokens
                       >= len(PROMPT) - TAIL, READY_S,
                       'the new router finds the prompt')


if __name__ == '__main__':
    unittest.main()
