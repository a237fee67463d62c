"""Faults on real processes under load: kill -9 and restart at the same address,
SIGSTOP, cut and silent TCP, a full KV pool. Every request ends with its right
tokens or a typed error, nothing leaks, and the cluster is healthy at the end.

As a test it disturbs for a minute. For longer, from this folder:

    ../../build/python/bin/python faults_test.py --seconds 300 --kills 50
"""

import argparse
import collections
import os
import random
import signal
import sys
import time
import unittest

from api import Api
from chaos import Chaos
from chaos import Host
from chaos import Watch
from cluster import Cluster
from cluster import metrics
from cluster import total
from cluster import wait_until
from fault_load import CHANNEL
from fault_load import Load
from fault_load import make_cases
from fault_load import make_long_cases
from fault_load import record

GRPC_STREAMS = 9
HTTP_STREAMS = 3
SETTLE_S = 60
CLIENT_WAITS_S = 1.0
# As many attempts without a token does the router make.
ATTEMPTS = 3
# Answers that took longer are listed.
SLOW_S = 10
# What a fault may make of a request.
TYPED = {
    'WORKER_LOST', 'NO_WORKERS', 'TRANSFER_FAILED', 'QUEUE_FULL', 'DEADLINE',
    # The router itself has gone, and took the connection along.
    'grpc UNAVAILABLE', 'http connection',
}
# Beyond what a server holds before the faults: its whole KV memory, its peers'
# as shared memory maps it, and room for what allocators keep.
MAX_GROWTH_BYTES = 256 << 20
MAX_GROWTH_DESCRIPTORS = 64


class Run:
    """One run: load and faults, then the checks."""

    def __init__(self, seconds, kills, seed, print_line=print, logs=None):
        self._seconds = seconds
        self._kills = kills
        self._seed = seed
        self._print = print_line
        self._host = Host(logs=logs)
        self._began = time.monotonic()

    def log(self, line):
        self._print(f'{time.monotonic() - self._began:7.2f} s  {line}')

    def check(self, test):
        try:
            self._check(test)
        except BaseException:
            for server in self._host.servers.values():
                self._print(f'--- {server.name}\n{server.log()}')
            raise
        finally:
            self._host.close()

    def _check(self, test):
        host = self._host
        host.start()
        wait_until(host.all_ready, SETTLE_S, 'all workers are ready')
        cases = make_cases(random.Random(f'{self._seed} cases'))
        long_cases = make_long_cases(random.Random(f'{self._seed} long'))
        with Api(host.router.grpc, CHANNEL) as api:
            right = record(api, cases + long_cases)
        self.log(f'recorded {len(right)} right answers')
        before = {name: s.usage() for name, s in host.servers.items()}

        watch = Watch(host)
        load = Load(host.router, cases, long_cases, right, self._seed,
                    GRPC_STREAMS, HTTP_STREAMS)
        chaos = Chaos(host, watch, load, f'{self._seed} faults', self.log)
        began = time.monotonic()
        chaos.run(self._seconds, self._kills)
        self.log('the last fault is mended')
        hung, broken, outcomes = load.stop()
        lasted = time.monotonic() - began
        wait_until(host.all_ready, SETTLE_S, 'all workers are ready again')
        watch.stop()
        self.log('all workers are ready')

        for outcome in outcomes:
            if outcome.reason not in ('ok', 'left'):
                outcome.excuse = self._excuse(outcome, watch, chaos)
        self._report(outcomes, chaos, watch, lasted)
        test.assertEqual(hung, 0, 'clients hang')
        test.assertEqual(broken, [])
        test.assertEqual([o for o in outcomes if o.wrong], [])
        test.assertEqual([o for o in outcomes if o.reason not in
                          TYPED | {'ok', 'left'}], [])
        test.assertEqual([o for o in outcomes if o.excuse == ''], [],
                         'requests that failed although they need not')
        test.assertGreater(sum(o.reason == 'ok' for o in outcomes), 20)
        self._check_at_rest(test, before)
        with Api(host.router.grpc, CHANNEL) as api:
            test.assertEqual(record(api, cases + long_cases), right)
        self._check_ends(test)

    def _excuse(self, outcome, watch, chaos):
        """Why a request may have failed; '' if it need not have."""
        # A client may not ask anew where it was refused just before.
        begin = outcome.begin - CLIENT_WAITS_S
        if watch.all_away_at_once(['router'], begin, outcome.end):
            return 'no router'
        decodes = self._host.of_role('decode')
        if watch.all_away_at_once(decodes, begin, outcome.end):
            return 'no decode worker'
        if chaos.met(outcome.begin, outcome.end) >= ATTEMPTS:
            return f'{ATTEMPTS} faults or more'
        return ''

    def _report(self, outcomes, chaos, watch, lasted):
        faults = ', '.join(f'{count} {kind}' for kind, count
                           in sorted(chaos.counts.items()))
        reasons = collections.Counter(o.reason for o in outcomes)
        answered = [o for o in outcomes if o.reason == 'ok']
        failed = [o for o in outcomes if o.reason not in ('ok', 'left')]
        self._print(f'faults in {lasted:.0f} s: {faults}')
        self._print(f'{len(outcomes)} requests: ' + ', '.join(
            f'{count} {reason}' for reason, count in reasons.most_common()))
        excuses = collections.Counter(o.excuse or 'none' for o in failed)
        self._print(f'{len(failed)} failed; excuses: ' + ', '.join(
            f'{count} {why}' for why, count in excuses.most_common()))
        for name in self._host.servers:
            away = [a.end - a.begin for a in watch.absences()
                    if a.server == name]
            self._print(f'{name} was away {len(away)} times, at most '
                        f'{max(away, default=0):.1f} s')
        for outcome in outcomes:
            if outcome.excuse == '' or outcome.seconds() > SLOW_S:
                self._print(f'at {outcome.begin - self._began:.2f} s for '
                            f'{outcome.seconds():.2f} s, after '
                            f'{outcome.tokens} tokens: {outcome.reason}: '
                            f'{outcome.message}')
        self._print(f'{sum(o.tokens for o in outcomes)} tokens compared, '
                    'slowest answer '
                    f'{max(o.seconds() for o in answered):.1f} s, answered '
                    f'{100 * (1 - len(failed) / len(outcomes)):.1f}%')

    def _check_at_rest(self, test, before):
        host = self._host
        page = wait_until(self._idle_router, SETTLE_S, 'the router is at rest')
        test.assertEqual(total(page, 'penstock_router_queued_requests'), 0)
        for server in host.servers.values():
            if server.role != 'router':
                wait_until(lambda: host.at_rest(server.name), SETTLE_S,
                           f'{server.name} is at rest with all its pages')
        for name, server in host.servers.items():
            then, now = before[name], server.usage()
            self.log(f'{name}: life {server.lives}, '
                     f'{now.resident_bytes >> 20} MiB '
                     f'({then.resident_bytes >> 20} before), '
                     f'{now.descriptors} descriptors ({then.descriptors}), '
                     f'{now.threads} threads ({then.threads})')
            test.assertLess(now.resident_bytes,
                            then.resident_bytes + MAX_GROWTH_BYTES, name)
            test.assertLess(now.descriptors,
                            then.descriptors + MAX_GROWTH_DESCRIPTORS, name)

    def _idle_router(self):
        page = metrics(self._host.router.metrics)
        idle = not total(page, 'penstock_router_inflight_requests')
        return page if idle else None

    def _check_ends(self, test):
        host = self._host
        # The router first: it may still want the workers.
        for servers in ([host.router], list(host.servers.values())[1:]):
            for server in servers:
                server.drain()
            for server in servers:
                test.assertEqual(server.wait_ended(), 0, server.name)
        test.assertEqual(
            {s.name: s.unexpected for s in host.servers.values()
             if s.unexpected}, {}, 'servers that ended by themselves')


class FaultsTest(unittest.TestCase):

    def test_a_cluster_outlives_its_parts(self):
        Run(seconds=60, kills=16, seed=1).check(self)

    def test_penstock_up_outlives_its_workers(self):
        """The cluster as users start it: workers that are killed under load are
        started again by their parent, and every answer is right."""
        rng = random.Random('up')
        cases = make_cases(rng)
        names = [f'{role}-{i}' for role in ('prefill', 'decode')
                 for i in range(2)]
        with Cluster('--prefill', 2, '--decode', 2, '--kv-memory',
                     '64MiB') as up:
            def all_ready():
                page = metrics(up.metrics)
                return all(total(page, 'penstock_worker_up', worker=name) == 1
                           for name in names)
            wait_until(all_ready, SETTLE_S, 'all workers are ready')
            with Api(up.grpc, CHANNEL) as api:
                right = record(api, cases)
            load = Load(up, cases, [], right, 'up', 4, 2)
            for _ in range(6):
                name = rng.choice(names)
                before = wait_until(lambda: up.pid(name), SETTLE_S,
                                    f'{name} runs')
                os.kill(before, signal.SIGKILL)
                wait_until(lambda: up.pid(name) not in (None, before),
                           SETTLE_S, f'{name} is started again')
            wait_until(all_ready, SETTLE_S, 'all workers are ready again')
            hung, broken, outcomes = load.stop()
            self.assertEqual((hung, broken), (0, []))
            self.assertEqual([o for o in outcomes if o.wrong or o.reason not in
                              TYPED | {'ok', 'left'}], [])
            self.assertGreater(sum(o.reason == 'ok' for o in outcomes), 5)
            with Api(up.grpc, CHANNEL) as api:
                self.assertEqual(record(api, cases), right)
            self.assertEqual(up.stop(), 0)

    def test_a_worker_gives_up_what_a_silent_router_wanted(self):
        host = Host(kv_memory='160MiB')
        self.addCleanup(host.close)
        host.start()
        wait_until(host.all_ready, SETTLE_S, 'all workers are ready')
        with Api(host.router.grpc) as api:
            # Half a minute's work.
            call = api.generate(
                text='Count:', stop={'max_tokens': 4000, 'ignore_eos': True})
            name = next(call).placement.decode
            wait_until(lambda: not host.at_rest(name), 10, f'{name} works')
            host.proxies[name, 'control'].hold()
            wait_until(lambda: host.at_rest(name), 10, f'{name} gives up')
            host.proxies[name, 'control'].release()
            call.cancel()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seconds', type=float, default=300)
    parser.add_argument('--kills', type=int, default=50)
    parser.add_argument('--seed', default='1')
    parser.add_argument('--logs', help='folder for what the servers log')
    arguments = parser.parse_args()

    class LongRun(unittest.TestCase):

        def test_a_cluster_outlives_its_parts(self):
            Run(arguments.seconds, arguments.kills, arguments.seed,
                lambda line: print(line, flush=True),
                arguments.logs).check(self)

    result = unittest.TextTestRunner(verbosity=2).run(
        unittest.defaultTestLoader.loadTestsFromTestCase(LongRun))
    return 0 if result.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
