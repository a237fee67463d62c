#!/usr/bin/env python3
"""Shows that the tests can fail: plants bugs in a copy of the sources, one at a
time, and says which test noticed.

  tests/mutants/mutants.py automatic --count 200 --seed 1   # nobody chose them
  tests/mutants/mutants.py seeded                           # seeded/*.patch

Each takes a scratch folder for each job, kept between runs so that only what
changed is built again.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import queue
import random
import re
import subprocess
import sys
import tempfile

import scratch as scratch_lib
import sites as sites_lib

FOLDERS = (
    'common/cost', 'common/engine', 'common/peer', 'common/schedule',
    'common/transfer', 'common/worker/core', 'decode_worker/core',
    'kvstore/core', 'prefill_worker/core', 'router/core')
_SEEDED = pathlib.Path(__file__).resolve().parent / 'seeded'
# Of the simulator's random runs, when nothing else has noticed.
_RANDOM_SEEDS = '1..40'
_MANY_SEEDS = '1..600'


class UnitAndSimulationTests:
    """All tests of the core, those nearest to the mutant first."""

    def __init__(self, copy):
        self._tests = copy.tests({'unit', 'sim'}, FOLDERS)
        self.targets = [*self._tests, 'penstock-sim']

    def commands(self, copy, folder):
        def distance(item):
            where = item[1][0]
            return (where != folder, where.startswith('tests/'), item[0])
        for name, (where, program) in sorted(self._tests.items(),
                                             key=distance):
            yield name, [copy.program(where, program)]
        yield _random_runs(copy, _RANDOM_SEEDS)


class Simulation:
    """Every named scenario, then random seeds."""

    def __init__(self, copy):
        self.targets = ['penstock-sim']

    def commands(self, copy, folder):
        sim = copy.program('bin', 'penstock-sim')
        listed = subprocess.run([sim, 'list'], capture_output=True, text=True)
        for name in re.findall(r'^[\w-]+$', listed.stdout, re.M):
            yield name, [sim, 'run', name, '--seed', '1']
        yield _random_runs(copy, _MANY_SEEDS)


def _random_runs(copy, seeds):
    return f'random seeds {seeds}', [
        copy.program('bin', 'penstock-sim'), 'random', '--seeds', seeds,
        '--shrink-runs', '0']


class Bench:
    """Scratch copies, one for each job, and what is run in them."""

    def __init__(self, directory, jobs, kind):
        self._free = queue.Queue()
        for job in range(jobs):
            copy = scratch_lib.Scratch(pathlib.Path(directory) / f'job{job}')
            print(f'preparing {copy.directory}', file=sys.stderr, flush=True)
            copy.prepare()
            self._checks = kind(copy)
            ok, why = copy.compile(self._checks.targets)
            if not ok:
                sys.exit(f'the sources do not build as they are:\n{why}')
            self._free.put(copy)
        self._measure(copy)

    def _measure(self, copy):
        """Time limits from what the true programs take."""
        self._limits = {}
        for name, command in self._checks.commands(copy, None):
            took, failed = copy.time(command, 600)
            if failed:
                sys.exit(f'{name} fails without any mutant: {failed}')
            self._limits[name] = 10 + 8 * took

    def judge(self, folder, plant):
        """What noticed the bug that `plant` makes in a copy: 'does not
        compile', a test with how it failed, or None."""
        copy = self._free.get()
        try:
            plant(copy)
            ok, _ = copy.compile(self._checks.targets)
            if not ok:
                return 'does not compile'
            for name, command in self._checks.commands(copy, folder):
                failed = copy.run(command, self._limits[name])
                if failed:
                    return f'{name} ({failed})'
            return None
        finally:
            copy.restore()
            self._free.put(copy)


def _sample(count, seed):
    """`count` sites, the same for the same sources and seed, from every folder
    by its share."""
    found = []
    for folder in FOLDERS:
        for path in sorted((scratch_lib.ROOT / folder).glob('*')):
            if path.suffix in ('.h', '.cc') and not re.search(
                    r'(_test|_mutation|_fixture|_fakes|_benchmark)\.',
                    path.name):
                name = f'{folder}/{path.name}'
                found += sites_lib.find(name, path.read_text())
    print(f'{len(found)} places for a mutant', file=sys.stderr)
    return random.Random(seed).sample(found, min(count, len(found)))


def automatic(options):
    chosen = _sample(options.count, options.seed)
    bench = Bench(options.scratch, options.jobs, UnitAndSimulationTests)

    def try_one(site):
        def plant(copy):
            copy.write(site.path, site.apply(copy.read(site.path)))
        return bench.judge(str(pathlib.Path(site.path).parent), plant)

    verdicts = collections.Counter()
    survivors = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for site, verdict in zip(chosen, pool.map(try_one, chosen)):
            text = (scratch_lib.ROOT / site.path).read_text()
            what = site.describe(text)
            print(f'{what} | {verdict or "SURVIVED"}', flush=True)
            if verdict is None:
                survivors.append(what)
                verdicts['survived'] += 1
            elif verdict == 'does not compile':
                verdicts[verdict] += 1
            else:
                verdicts['killed'] += 1
    judged = verdicts['killed'] + verdicts['survived']
    share = 100 * verdicts['killed'] / max(judged, 1)
    print(f'\n{verdicts["killed"]} of {judged} mutants killed ({share:.1f} %); '
          f'{verdicts["does not compile"]} did not compile')
    for what in survivors:
        print(f'survived: {what}')
    return 0 if share >= options.at_least else 1


def seeded(options):
    patches = sorted(_SEEDED.glob('*.patch'))
    bench = Bench(options.scratch, options.jobs, Simulation)

    def try_one(patch):
        first = re.search(r'^\+\+\+ b/(.*)/[^/]+$', patch.read_text(), re.M)
        return bench.judge(first.group(1), lambda copy: copy.patch(patch))

    missed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for patch, verdict in zip(patches, pool.map(try_one, patches)):
            caught = verdict is not None and verdict != 'does not compile'
            missed += not caught
            print(f'{patch.stem} | {verdict or "NOT CAUGHT"}', flush=True)
    print(f'\n{len(patches) - missed} of {len(patches)} seeded bugs caught')
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--scratch', default=str(
        pathlib.Path(tempfile.gettempdir()) / 'penstock-mutants'))
    kinds = parser.add_subparsers(required=True)
    command = kinds.add_parser('automatic')
    command.add_argument('--count', type=int, default=200)
    command.add_argument('--seed', type=int, default=1)
    command.add_argument('--at-least', type=float, default=80,
                         help='percent killed for exit status 0')
    command.set_defaults(run=automatic)
    command = kinds.add_parser('seeded')
    command.set_defaults(run=seeded)
    options = parser.parse_args()
    sys.exit(options.run(options))


if __name__ == '__main__':
    main()
