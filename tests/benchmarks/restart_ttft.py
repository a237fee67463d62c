#!/usr/bin/env python3
"""Time to first token of a prompt whose first 1,500 tokens were served before
the cluster was started again: from the workers' pages on disk, and by workers
that have no more than the shared store, beside computing all of it. All in one
run, taking turns, since a machine's speed drifts.

  tests/benchmarks/restart_ttft.py [--runs 5] [--prefix 1500]

needs the interpreter of tools/python_env and a Release build.
"""

import argparse
import pathlib
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(
    0, str(pathlib.Path(__file__).resolve().parent.parent / 'integration'))

import cluster  # noqa: E402
from api import Api  # noqa: E402
from servers import Server  # noqa: E402


def first_token_s(api, prompt):
    """From the call to the first token; the answer has only this one."""
    began = time.monotonic()
    for response in api.generate(ids={'ids': prompt},
                                 sampling={'temperature': 0},
                                 stop={'max_tokens': 1, 'ignore_eos': True}):
        if response.frame.tokens:
            return time.monotonic() - began
    raise AssertionError('no token')


def tokens(seed, count):
    chance = random.Random(seed)
    return [chance.randrange(1000, 40000) for _ in range(count)]


def life(flags, prompts):
    """Times to first token in one life of a cluster, behind a short prompt that
    nothing shares, so that everything is connected and warm."""
    with cluster.Cluster(*flags) as one, Api(one.grpc) as api:
        first_token_s(api, tokens(time.monotonic_ns(), 64))
        times = [first_token_s(api, prompt) for prompt in prompts]
        one.stop()
    return times


def from_store(prefix, prompt):
    """The prompt's time where other workers have put the prefix into a store
    that has it in memory."""
    with tempfile.NamedTemporaryFile(mode='w', suffix='.key') as key:
        key.write('the key of one run')
        key.flush()
        keyed = ('--cluster-key-file', key.name)
        kvstore = Server('kvstore', 'kvstore', *keyed, '--memory', '512MiB')
        try:
            kvstore.start()
            kvstore.wait_started()
            shared = ('--kvstore', kvstore.grpc, *keyed)
            life(shared, [prefix])
            return life(shared, [prompt])
        finally:
            kvstore.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--runs', type=int, default=5)
    parser.add_argument('--prefix', type=int, default=1500)
    parser.add_argument('--suffix', type=int, default=20)
    arguments = parser.parse_args()
    cold, disk, store = [], [], []
    for run in range(arguments.runs):
        prefix = tokens(2 * run, arguments.prefix)
        prompt = prefix + tokens(2 * run + 1, arguments.suffix)
        with tempfile.TemporaryDirectory() as folder:
            on_disk = ('--kv-disk', folder, '--kv-disk-bytes', '2GiB')
            cold += life((), [prompt])
            life(on_disk, [prefix])
            disk += life(on_disk, [prompt])
        store += from_store(prefix, prompt)
        print(f'run {run}: cold {cold[-1]:.3f} s, from disk {disk[-1]:.3f} s, '
              f'from the store {store[-1]:.3f} s', flush=True)
    print(f'median time to first token: cold {statistics.median(cold):.3f} s')
    for name, times in (('disk', disk), ('the store', store)):
        ratio = statistics.median(times) / statistics.median(cold)
        print(f'from {name} {statistics.median(times):.3f} s, '
              f'ratio {ratio:.3f}')


if __name__ == '__main__':
    main()
