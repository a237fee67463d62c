#!/usr/bin/env python3
"""Shows that the tests can fail: plants bugs in a copy of the sources, one at a
time, and says which test noticed.

  tests/mutants/mutants.py automatic --count 200 --seed 1   # nobody chose them
  tests/mutants/mutants.py seeded                           # seeded/*.patch

Automatic mutants are woven into one copy of the sources and built together; a
test runs against one of them only if it reaches its place. Those that need a
build of their own, and the seeded ones, take a scratch folder for each job.
All folders are kept between runs, so that only what changed is built again.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import queue
import random
import re
import subprocess
import sys
import tempfile
import zlib

import scratch as scratch_lib
import sites as sites_lib
import weave as weave_lib


def _core_folders():
    """Of the libraries that decide something in a service: ranks 15 to 27."""
    found = []
    for path in sorted(scratch_lib.ROOT.glob('*/**/CMakeLists.txt')):
        folder = str(path.parent.relative_to(scratch_lib.ROOT))
        ranks = re.findall(r'project_library\(\S+ LAYER (\d+)',
                           path.read_text())
        if any(15 <= int(rank) < 28 for rank in ranks) and not re.search(
                r'(^|/)(testing|build)(/|$)', folder):
            found.append(folder)
    return tuple(found)


FOLDERS = _core_folders()
_SEEDED = pathlib.Path(__file__).resolve().parent / 'seeded'
# Of the simulator's random runs, when nothing else has noticed.
_RANDOM_SEEDS = '1..40'
_MANY_SEEDS = '1..1000'
_NUMBERS_OF_A_FILE = 1024


class UnitAndSimulationTests:
    """All tests of the core, those nearest to the mutant first."""

    def __init__(self, copy):
        self._tests = copy.tests({'unit', 'sim'}, FOLDERS)
        self.targets = [*self._tests, 'penstock-sim']

    def commands(self, copy, folder):
        """(name, target to build, command), in the order to try them."""
        def distance(item):
            where = item[1][0]
            return (where != folder, where.startswith('tests/'), item[0])
        for name, (where, program) in sorted(self._tests.items(),
                                             key=distance):
            yield name, program, [copy.program(where, program)]
        yield _random_runs(copy, _RANDOM_SEEDS)


class Simulation:
    """Every named scenario, then random seeds."""

    def __init__(self, copy):
        self.targets = ['penstock-sim']

    def commands(self, copy, folder):
        sim = copy.program('bin', 'penstock-sim')
        listed = subprocess.run([sim, 'list'], capture_output=True, text=True)
        for name in re.findall(r'^[\w-]+$', listed.stdout, re.M):
            yield name, 'penstock-sim', [sim, 'run', name, '--seed', '1']
        yield _random_runs(copy, _MANY_SEEDS)


def _random_runs(copy, seeds):
    return f'random seeds {seeds}', 'penstock-sim', [
        copy.program('bin', 'penstock-sim'), 'random', '--seeds', seeds,
        '--shrink-runs', '0']


def _limit(took):
    """Seconds for a command that takes `took` when nothing is planted."""
    return int(3 + 6 * took)


class Bench:
    """Scratch copies, one for each job, for bugs that are built one by one."""

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
        self._limits = {}
        for name, _, command in self._checks.commands(copy, None):
            took, failed = copy.time(command)
            if failed:
                sys.exit(f'{name} fails without any mutant: {failed}')
            self._limits[name] = _limit(took)

    def judge(self, folder, plant):
        """What noticed the bug that `plant` makes in a copy: 'does not
        compile', a test with how it failed, or None."""
        copy = self._free.get()
        try:
            plant(copy)
            built = set()
            for name, target, command in self._checks.commands(copy, folder):
                if target not in built and not copy.compile([target])[0]:
                    return 'does not compile'
                built.add(target)
                failed = copy.run(command, self._limits[name])
                if failed:
                    return f'{name} ({failed})'
            return None
        finally:
            copy.restore()
            self._free.put(copy)


class Woven:
    """One copy that holds all mutants that can be woven, asleep."""

    def __init__(self, directory, jobs, sites):
        """`sites`: number -> site. Those woven are in `numbers`."""
        directory = pathlib.Path(directory)
        self._sites = sites
        self._by_path = collections.defaultdict(list)
        for number, site in sites.items():
            self._by_path[site.path].append(number)
        self._texts = {path: (scratch_lib.ROOT / path).read_text()
                       for path in self._by_path}
        self._copy = scratch_lib.Scratch(directory / 'woven')
        self._build(directory / 'refused.json', jobs)
        self._limits = {}
        self._took = {}
        self._reaches = {}
        self._measure(directory / 'reached')

    def _weave(self, refused):
        self.numbers = set()
        woven = {}
        for path, numbers in self._by_path.items():
            woven[path], planted = weave_lib.weave(
                self._texts[path], [(number, self._sites[number])
                                    for number in numbers
                                    if number not in refused])
            self.numbers |= set(planted)
        return woven

    def _build(self, memory, jobs):
        refused = self._recall(memory)
        self._copy.prepare(self._weave(refused))
        self._checks = UnitAndSimulationTests(self._copy)
        while True:
            print(f'building {len(self.numbers)} mutants', file=sys.stderr,
                  flush=True)
            errors = self._copy.errors(self._checks.targets, jobs)
            if not errors:
                return
            bad = {number for number in self.numbers
                   if weave_lib.covers(self._texts[self._sites[number].path],
                                       self._sites[number], errors)}
            if not bad:
                sys.exit(f'no mutant stands where {sorted(errors)}')
            refused |= bad
            memory.write_text(
                json.dumps([self._key(n) for n in sorted(refused)]))
            for path, text in self._weave(refused).items():
                self._copy.write(path, text)

    def _key(self, number):
        site = self._sites[number]
        text = self._texts[site.path]
        return [site.path, zlib.crc32(text.encode()), site.start, site.end,
                site.kind]

    def _recall(self, memory):
        """What an earlier run found that does not compile."""
        if not memory.exists():
            return set()
        known = {tuple(key) for key in json.loads(memory.read_text())}
        return {n for n in self._sites if tuple(self._key(n)) in known}

    def _measure(self, file):
        for name, _, command in self._checks.commands(self._copy, None):
            file.unlink(missing_ok=True)
            took, failed = self._copy.time(command,
                                           {'MUTANTS_REACHED': str(file)})
            if failed:
                sys.exit(f'{name} fails without any mutant: {failed}')
            print(f'{name} takes {took:.1f} s', file=sys.stderr, flush=True)
            self._limits[name] = _limit(took)
            self._took[name] = took
            reached = file.read_bytes() if file.exists() else b''
            self._reaches[name] = {n for n in self.numbers
                                   if n < len(reached) and reached[n]}

    def judge(self, number):
        """What noticed the mutant, or None, and how many tests reach it."""
        folder = str(pathlib.Path(self._sites[number].path).parent)
        near = folder.replace('/', '_')
        reached = 0
        for name, _, command in sorted(
                self._checks.commands(self._copy, folder),
                key=lambda x: (not x[0].startswith(near), self._took[x[0]])):
            if number not in self._reaches[name]:
                continue
            reached += 1
            failed = self._copy.run(command, self._limits[name],
                                    {'MUTANT': str(number)})
            if failed:
                return f'{name} ({failed})', reached
        return None, reached


def _all_sites():
    """number -> site. Headers hold declarations, default values and accessors
    of a line: a mutant there would build everything anew."""
    found = {}
    paths = []
    for folder in FOLDERS:
        paths += [
            path for path in sorted((scratch_lib.ROOT / folder).glob('*'))
            if path.suffix == '.cc' and not re.search(
                r'(_test|_mutation|_fixture|_fakes|_benchmark)\.', path.name)]
    for i, path in enumerate(paths):
        name = str(path.relative_to(scratch_lib.ROOT))
        sites = sites_lib.find(name, path.read_text())
        assert len(sites) < _NUMBERS_OF_A_FILE, name
        # A file keeps its numbers when another one changes.
        found |= dict(enumerate(sites, 1 + i * _NUMBERS_OF_A_FILE))
    print(f'{len(found)} places for a mutant', file=sys.stderr)
    return found


class Score:
    """Counts verdicts, and prints each as it comes."""

    def __init__(self):
        self._counts = collections.Counter()
        self._survivors = []

    def add(self, what, verdict, reached=None):
        print(f'{what} | {verdict or "SURVIVED"}', flush=True)
        if verdict == 'does not compile':
            self._counts[verdict] += 1
            return
        self._counts['killed' if verdict else 'survived'] += 1
        if not verdict:
            by = '' if reached is None else f' (reached by {reached} tests)'
            self._survivors.append(what + by)

    def summary(self):
        """Prints the table and returns the percentage killed."""
        killed = self._counts['killed']
        judged = killed + self._counts['survived']
        share = 100 * killed / max(judged, 1)
        for what in sorted(self._survivors):
            print(f'survived: {what}')
        print(f'{killed} of {judged} mutants killed ({share:.1f} %); '
              f'{self._counts["does not compile"]} did not compile')
        return share


def automatic(options):
    sites = _all_sites()
    chosen = random.Random(options.seed).sample(
        sorted(sites), min(options.count, len(sites)))
    names = {number: sites[number].describe(
        (scratch_lib.ROOT / sites[number].path).read_text())
             for number in chosen}
    score = Score()
    woven = Woven(options.scratch, options.jobs, sites)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        numbers = [number for number in chosen if number in woven.numbers]
        for number, (verdict, reached) in zip(
                numbers, pool.map(woven.judge, numbers)):
            score.add(names[number], verdict, reached)

    rest = [number for number in chosen if number not in woven.numbers]
    if options.woven_only:
        print(f'{len(rest)} that need a build of their own were left out')
    elif rest:
        bench = Bench(options.scratch, options.jobs, UnitAndSimulationTests)

        def try_one(number):
            site = sites[number]

            def plant(copy):
                copy.plant(site.path, site.apply(copy.read(site.path)))
            return bench.judge(str(pathlib.Path(site.path).parent), plant)

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for number, verdict in zip(rest, pool.map(try_one, rest)):
                score.add(names[number], verdict)
    return 0 if score.summary() >= options.at_least else 1


def seeded(options):
    patches = sorted(_SEEDED.glob('*.patch'))
    if options.only:
        patches = [p for p in patches if p.stem in options.only]
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
    command.add_argument('--woven-only', action='store_true',
                         help='leave out what needs a build of its own')
    command.add_argument('--at-least', type=float, default=80,
                         help='percent killed for exit status 0')
    command.set_defaults(run=automatic)
    command = kinds.add_parser('seeded')
    command.add_argument('only', nargs='*', help='names; none: all')
    command.set_defaults(run=seeded)
    options = parser.parse_args()
    sys.exit(options.run(options))


if __name__ == '__main__':
    main()
