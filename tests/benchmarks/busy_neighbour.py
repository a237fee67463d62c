#!/usr/bin/env python3
"""What a busy process on the same cores takes of an engine's speed.

  busy_neighbour.py --model MODEL.gguf [--peer 'PYTHON BENCH.py']

Runs `penstock bench engine` alone and beside processes that only spin, all on
as many cores as it has threads, in pairs, and the peer as well where one is
given. Prints the share of its own speed that each keeps: medians of the pairs,
with the lowest and highest. With n threads and s spinning processes on n cores
the fair share is n / (n + s). "Less": the share that the engine reaches alone
with s threads fewer, which is what is left to one that gives its neighbours
their cores.
"""

import argparse
import contextlib
import functools
import os
import shlex
import subprocess
import sys

import paired


@contextlib.contextmanager
def spinning(count):
    """While it lasts, `count` processes that do nothing but compute."""
    spinners = [subprocess.Popen([sys.executable, '-c', 'while True: pass'])
                for _ in range(count)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def beside(count, side):
    with spinning(count):
        return side()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--model', required=True)
    parser.add_argument('--peer', help="the peer's command in one word")
    parser.add_argument('--spinners', type=int, default=1)
    paired.add_engine_options(parser, batch='1,8')
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    threads = options.threads
    if len(cores) < threads:
        parser.error(f'--threads {threads}: there are {len(cores)}')
    os.sched_setaffinity(0, cores[:threads])

    engines = {'penstock': [options.penstock, 'bench', 'engine', '--json',
                            *shlex.split(options.ours)]}
    if options.peer:
        engines['peer'] = shlex.split(options.peer)
    sides = []
    for engine in engines.values():
        def run(threads, engine=engine):
            options.threads = threads
            return paired.run_json(
                [*engine, *paired.engine_load(options, options.model)],
                options.timeout)
        alone = functools.partial(run, threads)
        sides += [alone, functools.partial(beside, options.spinners, alone),
                  functools.partial(run, max(1, threads - options.spinners))]
    pairs = [[paired.speeds(document)
              for document in paired.in_turn(pair, sides)]
             for pair in range(options.pairs)]

    fair = threads / (threads + options.spinners)
    print(f'{paired.processor()}; {threads} threads on as many cores, '
          f'{options.spinners} spinning beside them, {options.pairs} pairs; '
          f'fair share {fair:.2f}\n')
    print(f'{"share of speed kept":24} {"median":>7} {"lowest":>7}'
          f' {"highest":>7} {"less":>7} {"alone":>9} {"beside":>9}')
    for index, name in enumerate(engines):
        for figure in pairs[0][3 * index]:
            alone, busy, less = [[pair[3 * index + side][figure]
                                  for pair in pairs] for side in range(3)]
            kept = paired.summary([b / a for a, b in zip(alone, busy)])
            left = paired.summary([b / a for a, b in zip(alone, less)])
            print(f'{name + " " + figure:24} {kept.median:7.2f}'
                  f' {kept.low:7.2f} {kept.high:7.2f} {left.median:7.2f}'
                  f' {paired.summary(alone).median:9.1f}'
                  f' {paired.summary(busy).median:9.1f}')


if __name__ == '__main__':
    main()
