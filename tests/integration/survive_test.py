"""One fault, one request: what a client sees when a server that works for it is
killed, drained, frozen or cut off. `faults_test.py` has the same at random."""

import unittest

import grpc

from api import Answer
from api import Api
from chaos import Host
from cluster import metrics
from cluster import total
from cluster import wait_until
from fault_load import CHANNEL

READY_S = 60
PROMPT = [100 + i * 7 % 3000 for i in range(200)]
SAMPLING = (
    {'temperature': 0},
    {'temperature': 0.9, 'seed': 5, 'repetition_penalty': 1.2},
    {'temperature': 0.9, 'seed': 6, 'mirostat': True},
)


class SurviveTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.host = Host(kv_memory='96MiB')
        cls.addClassCleanup(cls.host.close)
        cls.host.start()

    def setUp(self):
        wait_until(self.host.all_ready, READY_S, 'all workers are ready')
        self.api = Api(self.host.router.grpc, CHANNEL)
        self.addCleanup(self.api.close)
        self.api.learn()

    def call(self, sampling, max_tokens=200):
        return self.api.generate(
            ids={'ids': PROMPT}, sampling=sampling,
            stop={'max_tokens': max_tokens, 'ignore_eos': True})

    def undisturbed(self, sampling):
        answer = Answer()
        for response in self.call(sampling):
            answer.add(response)
        return answer

    def disturbed(self, sampling, act, after=40):
        """The answer to a request whose decode worker has `act` done to it, by
        name, after so many tokens."""
        answer = Answer()
        for response in self.call(sampling):
            answer.add(response)
            if act is not None and len(answer.ids) >= after:
                act(answer.placement.decode)
                act = None
        answer.check_finished()
        return answer

    def retries(self):
        return total(metrics(self.host.router.metrics),
                     'penstock_router_retries_total')

    def expect_the_same(self, act, mend, samplings=SAMPLING):
        """Whatever is done to the decode worker, the client does not see it."""
        acted_on = []
        before = self.retries()

        def note_and_act(name):
            acted_on.append(name)
            act(name)
        for sampling in samplings:
            right = self.undisturbed(sampling)
            answer = self.disturbed(sampling, note_and_act)
            self.assertEqual((answer.ids, answer.text),
                             (right.ids, right.text))
            self.assertEqual(answer.last.usage.completion_tokens, 200)
            mend(acted_on[-1])
            wait_until(self.host.all_ready, READY_S, 'everybody is back')
        self.assertEqual(len(acted_on), len(samplings))
        # The router did.
        self.assertGreaterEqual(self.retries(), before + len(samplings))

    def start(self, name):
        self.host.servers[name].start()
        self.host.servers[name].wait_started()

    def test_a_stream_goes_on_when_its_decode_worker_is_killed(self):
        self.expect_the_same(
            lambda name: self.assertTrue(self.host.servers[name].kill()),
            self.start)

    def test_a_stream_moves_when_its_decode_worker_drains(self):
        def mend(name):
            self.assertEqual(self.host.servers[name].wait_ended(), 0)
            self.start(name)
        self.expect_the_same(
            lambda name: self.host.servers[name].drain(), mend)

    def test_a_stream_goes_on_when_its_connection_is_cut(self):
        self.expect_the_same(
            lambda name: self.host.proxies[name, 'control'].cut(),
            lambda name: None, SAMPLING[1:2])

    def test_a_stream_goes_on_when_its_decode_worker_freezes(self):
        self.expect_the_same(
            lambda name: self.host.servers[name].freeze(),
            lambda name: self.host.servers[name].thaw(), SAMPLING[2:])

    def test_a_stream_waits_when_all_decode_workers_restart(self):
        def restart(_):
            servers = [self.host.servers[name]
                       for name in self.host.of_role('decode')]
            for server in servers:
                self.assertTrue(server.kill())
            for server in servers:
                server.start()
            for server in servers:
                server.wait_started()
        self.expect_the_same(restart, lambda name: None, SAMPLING[2:])

    def test_a_request_goes_on_when_its_prefill_worker_is_killed(self):
        prompt = [100 + i * 11 % 3000 for i in range(1000)]
        asked = {'ids': {'ids': prompt}, 'sampling': SAMPLING[0],
                 'stop': {'max_tokens': 8, 'ignore_eos': True}}
        # Under a salt of its own, so that it is computed again below.
        right = self.api.answer(cache_salt='undisturbed', **asked)
        wait_until(lambda: all(self.host.at_rest(name)
                               for name in self.host.of_role('prefill')),
                   READY_S, 'prefill is at rest')
        before = self.retries()
        call = self.api.generate(**asked)
        # Whichever works on it.
        busy = wait_until(lambda: [
            name for name in self.host.of_role('prefill')
            if not self.host.at_rest(name)], READY_S, 'the prompt is computed')
        for name in busy:
            self.host.servers[name].kill()
        answer = Answer()
        for response in call:
            answer.add(response)
        answer.check_finished()
        self.assertEqual(answer.ids, right.ids)
        self.assertGreater(self.retries(), before)
        for name in busy:
            self.start(name)

    def test_a_killed_router_is_an_error_and_leaves_nothing(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.disturbed(SAMPLING[0], lambda _: self.host.router.kill())
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        for role in ('prefill', 'decode'):
            for name in self.host.of_role(role):
                wait_until(lambda: self.host.at_rest(name), READY_S,
                           f'{name} is at rest')
        self.start('router')
        wait_until(self.host.all_ready, READY_S, 'all workers have come back')
        self.assertEqual(len(self.undisturbed(SAMPLING[0]).ids), 200)
        page = metrics(self.host.router.metrics)
        self.assertEqual(total(page, 'penstock_router_inflight_requests'), 0)


if __name__ == '__main__':
    unittest.main()
