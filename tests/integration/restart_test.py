"""KV that outlives its workers: a cluster that is started again goes on from
the pages on disk, with the same tokens, whatever has become of them."""

import os
import pathlib
import random
import tempfile
import unittest

import cluster
from api import Api
from equality_test import PAGE_BYTES
from equality_test import Run

PREFIX = [random.Random(6).randrange(1000, 40000) for _ in range(1500)]
PROMPT = PREFIX + [random.Random(7).randrange(1000, 40000) for _ in range(20)]
PREFIX_BLOCKS = len(PREFIX) // 16
STEPS = 8


def tier_metric(one, name, **labels):
    return sum(
        cluster.total(cluster.metrics(server['metrics']),
                      f'penstock_kv_tier_{name}', **labels)
        for server in one.servers.values() if server['role'] != 'router')


def flip_bits(folder, every, seed):
    """One bit in about every so many bytes of the pages' files."""
    chance = random.Random(seed)
    flipped = 0
    for path in sorted(pathlib.Path(folder).rglob('*')):
        if not path.is_file() or path.name == 'cluster-key':
            continue
        size = path.stat().st_size
        with open(path, 'r+b') as file:
            for _ in range(size // every):
                at = chance.randrange(size)
                byte = os.pread(file.fileno(), 1, at)[0]
                byte ^= 1 << chance.randrange(8)
                os.pwrite(file.fileno(), bytes([byte]), at)
                flipped += 1
    return flipped


class RestartTest(unittest.TestCase):

    def life(self, prompt, *flags):
        """One life of a cluster that serves one request: what it answered, the
        pages it fetched and those it found bad."""
        with cluster.Cluster(*flags) as one, Api(one.grpc) as api:
            run = Run(api, prompt, STEPS)
            fetched = tier_metric(one, 'fetched_bytes_total') // PAGE_BYTES
            bad = tier_metric(one, 'failures_total', op='fetch', reason='bad')
            self.assertEqual(one.stop(), 0)
        return run, fetched, bad

    def test_goes_on_from_disk(self):
        reference, _, _ = self.life(PROMPT)
        with tempfile.TemporaryDirectory() as folder:
            disk = ('--kv-disk', folder, '--kv-disk-bytes', '512MiB')
            _, fetched, _ = self.life(PREFIX, *disk)
            self.assertEqual(fetched, 0)
            run, fetched, bad = self.life(PROMPT, *disk)
            self.assertEqual(run.result, reference.result)
            self.assertEqual(fetched, PREFIX_BLOCKS)
            self.assertEqual(bad, 0)
            self.assertEqual(run.usage.cached_tokens, PREFIX_BLOCKS * 16)
            # About one page in four has a flipped bit.
            self.assertGreater(flip_bits(folder, 4 * PAGE_BYTES, 8), 0)
            run, fetched, bad = self.life(PROMPT, *disk)
            self.assertEqual(run.result, reference.result)
            self.assertLess(fetched, PREFIX_BLOCKS)
            self.assertGreater(bad, 0)


if __name__ == '__main__':
    unittest.main()
