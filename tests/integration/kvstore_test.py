"""KV of one worker that serves another: from the cluster's store, which outlives
both, and from the worker's own pool. The same tokens, whatever becomes of whom."""

import os
import random
import signal
import tempfile
import threading
import unittest

from api import Api
from cluster import Cluster
from cluster import metrics
from cluster import total
from cluster import wait_until
from equality_test import PAGE_BYTES
from equality_test import Run
from fault_load import CHANNEL
from restart_test import flip_bits
from servers import Server

READY_S = 60
STEPS = 8
PROMPTS = range(3)
PREFIX_BLOCKS = 24


def tokens(seed, count):
    chance = random.Random(seed)
    return [chance.randrange(1000, 40000) for _ in range(count)]


def prompt(number):
    return tokens(number, PREFIX_BLOCKS * 16 + 20)


class KvstoreTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.pages = os.path.join(folder.name, 'pages')
        key = os.path.join(folder.name, 'key')
        with open(key, 'w', encoding='utf-8') as file:
            file.write('the key of one test')
        common = ('--cluster-key-file', key)
        # Memory for a few pages only: most come from its disk.
        self.store = self.server('kvstore', 'kvstore', *common, '--memory',
                                 str(8 * PAGE_BYTES), '--disk', self.pages)
        self.router = self.server('router', 'router', *common)
        # Without prefill workers, decode workers compute prompts themselves.
        self.workers = [
            self.server(f'decode-{i}', 'decode', *common, '--router',
                        self.router.grpc, '--kvstore', self.store.grpc,
                        '--threads', 1, '--host-workers', 2, '--kv-memory',
                        '96MiB')
            for i in range(2)]
        self.store.start()
        self.store.wait_started()
        self.router.start()
        self.router.wait_started()
        self.start(self.workers[0])
        self.api = Api(self.router.grpc, CHANNEL)
        self.addCleanup(self.api.close)

    def server(self, *arguments):
        server = Server(*arguments)
        self.addCleanup(server.close)
        return server

    def start(self, worker):
        worker.start()
        worker.wait_started()
        self.wait_attached()
        wait_until(lambda: total(metrics(self.router.metrics),
                                 'penstock_worker_up') == self.running(),
                   READY_S, 'the router knows the worker')

    def running(self):
        return sum(worker.running() for worker in self.workers)

    def wait_attached(self):
        wait_until(lambda: self.stored('workers') == self.running(), READY_S,
                   'the workers attach to the store')

    def stored(self, name):
        return total(metrics(self.store.metrics), f'penstock_kvstore_{name}')

    def tier(self, worker, name, **labels):
        return total(metrics(worker.metrics), f'penstock_kv_tier_{name}',
                     **labels)

    def wait_stored(self, puts):
        wait_until(lambda: self.stored('disk_pages') >= puts, READY_S,
                   f'{puts} pages are stored')

    def replace_worker(self):
        """The first worker is killed, the second comes."""
        self.assertTrue(self.workers[0].kill())
        self.start(self.workers[1])
        return self.workers[1]

    def store_prompts(self):
        """The answers to all prompts, whose pages are in the store then."""
        right = {number: Run(self.api, prompt(number), STEPS).result
                 for number in PROMPTS}
        self.wait_stored(len(PROMPTS) * PREFIX_BLOCKS)
        return right

    def expect_served(self, right):
        """Asks all prompts of a worker that has none. How much of one is worth
        a fetch depends on the machine's mood."""
        cached = 0
        for number, result in right.items():
            run = Run(self.api, prompt(number), STEPS)
            self.assertEqual(run.result, result)
            cached += run.usage.cached_tokens
        self.assertGreater(cached, 0)
        return cached

    def test_another_worker_goes_on_from_the_store(self):
        right = self.store_prompts()
        other = self.replace_worker()
        cached = self.expect_served(right)
        self.assertGreaterEqual(self.tier(other, 'hits_total') * 16, cached)
        self.assertGreaterEqual(self.tier(other, 'fetched_bytes_total'),
                                cached // 16 * PAGE_BYTES)
        wait_until(lambda: self.stored('get_hits_total') * 16 >= cached,
                   READY_S, 'the store tells what it gave')

    def test_bits_that_flip_on_the_stores_disk(self):
        right = self.store_prompts()
        self.assertTrue(self.store.kill())
        # About every eighth page.
        self.assertGreater(flip_bits(self.pages, 8 * PAGE_BYTES, 9), 0)
        self.store.start()
        self.store.wait_started()
        self.wait_attached()
        self.replace_worker()
        self.expect_served(right)
        wait_until(lambda: self.stored('bad_pages_total') > 0, READY_S,
                   'the store tells of bad pages')

    def test_the_store_is_killed_amid_traffic(self):
        right = self.store_prompts()
        other = self.replace_worker()
        wrong = []
        asked = []

        def ask():
            while len(asked) < 3 * len(PROMPTS):
                number = PROMPTS[len(asked) % len(PROMPTS)]
                if Run(self.api, prompt(number), STEPS).result != right[number]:
                    wrong.append(number)
                asked.append(number)
        load = threading.Thread(target=ask)
        load.start()
        wait_until(lambda: self.tier(other, 'fetched_bytes_total') > 0
                   or len(asked) > 1, READY_S, 'pages come from the store')
        self.assertTrue(self.store.kill())
        wait_until(lambda: len(asked) > len(PROMPTS), READY_S,
                   'requests end without it')
        self.store.start()
        self.store.wait_started()
        load.join()
        self.assertEqual(wrong, [])
        # What it had on disk serves a third life of a worker.
        self.wait_attached()
        self.assertGreaterEqual(self.stored('disk_pages'),
                                len(PROMPTS) * PREFIX_BLOCKS)
        self.assertTrue(other.kill())
        self.start(self.workers[0])
        self.expect_served(right)


class PullTest(unittest.TestCase):

    def server(self, *arguments):
        server = Server(*arguments)
        self.addCleanup(server.close)
        server.start()
        server.wait_started()
        return server

    def test_a_worker_pulls_from_anothers_pool(self):
        with tempfile.NamedTemporaryFile(mode='w', suffix='.key') as key:
            key.write('the key of one test')
            key.flush()
            common = ('--cluster-key-file', key.name)
            # In turn, so that each prompt's second request is computed by the
            # worker that does not have it; decode has it, and is not to.
            router = self.server('router', 'router', *common, '--policy',
                                 'round_robin', '--local-prefill-tokens', 0)
            workers = [
                self.server(name, role, *common, '--router', router.grpc,
                            '--threads', 1, '--host-workers', 3,
                            '--kv-memory', '96MiB')
                for name, role in (('prefill-0', 'prefill'),
                                   ('prefill-1', 'prefill'),
                                   ('decode-0', 'decode'))]
        wait_until(lambda: total(metrics(router.metrics), 'penstock_worker_up')
                   == len(workers), READY_S, 'the router knows the workers')
        cached = 0
        with Api(router.grpc, CHANNEL) as api:
            for number in range(5):
                first = Run(api, prompt(number), STEPS)
                second = Run(api, prompt(number), STEPS)
                self.assertEqual(first.result, second.result)
                self.assertEqual(first.usage.cached_tokens, 0)
                cached += second.usage.cached_tokens
        fetched = sum(total(metrics(worker.metrics),
                            'penstock_kv_tier_fetched_bytes_total')
                      for worker in workers if worker.role == 'prefill')
        # How much is worth it depends on the machine's mood.
        self.assertGreater(cached, 0)
        self.assertGreater(fetched, 0)


class UpTest(unittest.TestCase):

    def test_up_starts_a_store_and_starts_it_again(self):
        with Cluster('--kvstore', '--kvstore-memory', '64MiB') as one:
            store = one.servers['kvstore']

            def attached():
                try:
                    return total(metrics(store['metrics']),
                                 'penstock_kvstore_workers') == 2
                except OSError:  # between two lives
                    return False
            wait_until(attached, READY_S, 'both workers attach')
            with Api(one.grpc) as api:
                Run(api, prompt(1), STEPS)
            wait_until(lambda: total(metrics(store['metrics']),
                                     'penstock_kvstore_puts_total')
                       >= PREFIX_BLOCKS, READY_S, 'pages are stored')
            one.signal_server('kvstore', signal.SIGKILL)
            wait_until(lambda: not attached(), READY_S, 'it has ended')
            wait_until(attached, READY_S, 'both workers attach again')
            self.assertEqual(one.stop(), 0)


if __name__ == '__main__':
    unittest.main()
