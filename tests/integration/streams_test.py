"""Sixty-four streams at once, of mixed lengths, without and with cancels: all
end rightly, pages are conserved and metrics equal what the client counted."""

import collections
import random
import threading
import unittest

import grpc

import cluster
from api import Answer
from api import Api
from cluster import total
from cluster import wait_until

STREAMS = 64
DEADLINE_S = 180
PAGE_STATES = ('free', 'cached', 'active', 'in_transfer', 'quarantined')


class Stream:
    """One request: what it asked, what it got."""

    def __init__(self, rng, cancels):
        length = rng.choice((3, 17, 40, 90, 200, 420))
        self.prompt = [rng.randrange(1000, 40000) for _ in range(length)]
        self.wanted = rng.randrange(1, 40)
        # Cancelled after so many tokens; None: never.
        self.cancel_after = None
        if cancels and rng.random() < 0.4:
            self.cancel_after = rng.randrange(0, self.wanted)
        self.answer = Answer()
        self.code = None

    def run(self, api):
        call = api.generate(
            ids={'ids': self.prompt}, sampling={'temperature': 0},
            stop={'max_tokens': self.wanted, 'ignore_eos': True},
            timeout=DEADLINE_S)
        try:
            if self.cancel_after == 0:
                call.cancel()
            for response in call:
                self.answer.add(response)
                if (self.cancel_after is not None
                        and len(self.answer.ids) >= self.cancel_after):
                    call.cancel()
            self.code = grpc.StatusCode.OK
        except grpc.RpcError as error:
            self.code = error.code()


class StreamsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None)
        cls.api = Api(cls.cluster.grpc)
        cls.addClassCleanup(cls.api.close)

    def run_streams(self, seed, cancels):
        rng = random.Random(seed)
        streams = [Stream(rng, cancels) for _ in range(STREAMS)]
        threads = [threading.Thread(target=stream.run, args=(self.api,))
                   for stream in streams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        self.assertFalse(any(thread.is_alive() for thread in threads))
        return streams

    def counters(self):
        """What the router counted; streams that still end count later."""
        def at_rest():
            page = cluster.metrics(self.cluster.metrics)
            running = total(page, 'penstock_router_inflight_requests')
            return None if running else page
        page = wait_until(at_rest, 30, 'no request is in flight')
        return {name: total(page, name)
                for name in ('penstock_router_requests_total',
                             'vllm:prompt_tokens_total',
                             'vllm:generation_tokens_total')}

    def pages_at_rest(self):
        for server in self.cluster.servers.values():
            if server['role'] == 'router':
                continue
            values = cluster.metrics(server['metrics'])
            by_state = {state: total(values, 'penstock_blocks', state=state)
                        for state in PAGE_STATES}
            if any(by_state[state] for state in
                   ('active', 'in_transfer', 'quarantined')):
                return False
            self.assertEqual(sum(by_state.values()),
                             cluster.blocks(values), server['name'])
        return True

    def settle(self):
        wait_until(self.pages_at_rest, 30, 'every page is free or cached')

    def change(self, before):
        return {name: value - before[name]
                for name, value in self.counters().items()}

    def test_without_cancels_metrics_are_exact(self):
        before = self.counters()
        streams = self.run_streams(seed=1, cancels=False)
        for stream in streams:
            self.assertEqual(stream.code, grpc.StatusCode.OK)
            stream.answer.check_finished()
            self.assertEqual(len(stream.answer.ids), stream.wanted)
            self.assertEqual(stream.answer.last.usage.prompt_tokens,
                             len(stream.prompt))
        self.settle()
        self.assertEqual(self.change(before), {
            'penstock_router_requests_total': STREAMS,
            'vllm:prompt_tokens_total': sum(
                len(stream.prompt) for stream in streams),
            'vllm:generation_tokens_total': sum(
                stream.wanted for stream in streams),
        })

    def test_with_cancels_the_rest_ends_rightly(self):
        before = self.counters()
        streams = self.run_streams(seed=2, cancels=True)
        cancelled = [s for s in streams if s.cancel_after is not None]
        whole = [s for s in streams if s.cancel_after is None]
        self.assertGreater(len(cancelled), STREAMS // 4)
        for stream in whole:
            self.assertEqual(stream.code, grpc.StatusCode.OK)
            self.assertEqual(len(stream.answer.ids), stream.wanted)
        codes = collections.Counter(stream.code for stream in cancelled)
        # One that was cancelled at its very end may have ended first.
        self.assertLessEqual(set(codes), {grpc.StatusCode.CANCELLED,
                                          grpc.StatusCode.OK})
        self.settle()
        change = self.change(before)
        self.assertLessEqual(change['penstock_router_requests_total'], STREAMS)
        self.assertGreaterEqual(
            change['penstock_router_requests_total'], len(whole))
        received = sum(len(stream.answer.ids) for stream in streams)
        share = sum(stream.wanted for stream in cancelled)
        self.assertGreaterEqual(
            change['vllm:generation_tokens_total'],
            sum(stream.wanted for stream in whole))
        self.assertLessEqual(
            abs(change['vllm:generation_tokens_total'] - received), share)

    def test_results_do_not_depend_on_the_company(self):
        together = self.run_streams(seed=3, cancels=False)
        for stream in together[:6]:
            alone = self.api.answer(
                ids={'ids': stream.prompt}, sampling={'temperature': 0},
                stop={'max_tokens': stream.wanted, 'ignore_eos': True})
            self.assertEqual(alone.ids, stream.answer.ids)


if __name__ == '__main__':
    unittest.main()
