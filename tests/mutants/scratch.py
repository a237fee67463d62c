"""A copy of the sources in which bugs are planted, built without gRPC, and
otherwise as the working tree is, so that a compiler cache has what holds no
bug."""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Scratch:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory).resolve()
        self.build = self.directory / 'build' / 'release'
        self._original = {}

    def prepare(self, woven=()):
        """Copies what git knows, as it is in the working tree, but for the
        files of `woven`, path -> text."""
        files = subprocess.run(
            ['git', 'ls-files', '-z', '--cached', '--others',
             '--exclude-standard'], cwd=ROOT, check=True,
            capture_output=True, text=True).stdout.split('\0')
        for name in filter(None, files):
            if not (ROOT / name).is_file() or name in woven:
                continue
            to = self.directory / name
            to.parent.mkdir(parents=True, exist_ok=True)
            if (not to.exists()
                    or to.read_bytes() != (ROOT / name).read_bytes()):
                shutil.copyfile(ROOT / name, to)
                shutil.copymode(ROOT / name, to)
        for name, text in dict(woven).items():
            self.write(name, text)
        subprocess.run(
            ['cmake', '-G', 'Ninja', '-S', self.directory, '-B', self.build,
             '-DPENSTOCK_RPC=OFF', '-DBUILD_TESTING=ON',
             '-DCMAKE_BUILD_TYPE=Release', f'-DPENSTOCK_DATA={ROOT}'],
            check=True, stdout=subprocess.DEVNULL)

    def compile(self, targets):
        """Whether it builds, and the last lines that say why not."""
        done = subprocess.run(['ninja', '-C', self.build, '-j1', *targets],
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return done.returncode == 0, done.stdout[-2000:]

    def tests(self, labels, folders):
        """name -> (folder, program) of the tests with one of `labels`; unit
        tests only from `folders`."""
        done = subprocess.run(
            ['ctest', '--test-dir', self.build, '--show-only=json-v1'],
            check=True, capture_output=True, text=True)
        found = {}
        for test in json.loads(done.stdout)['tests']:
            properties = {p['name']: p['value'] for p in test['properties']}
            mine = set(properties.get('LABELS', [])) & set(labels)
            where = os.path.relpath(properties['WORKING_DIRECTORY'],
                                    self.build)
            program = test['name'].endswith('_test')
            if program and mine and ('sim' in mine or where in folders):
                found[test['name']] = (where, test['name'])
        return found

    def program(self, folder, name):
        return str(self.build / folder / name)

    def errors(self, targets, jobs):
        """(path, line) of whatever the compiler said against anything on the
        way to `targets`; none when all of them are built."""
        done = subprocess.run(
            ['ninja', '-C', self.build, f'-j{jobs}', '-k', '0', *targets],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode == 0:
            return set()
        found = set()
        for path, line in re.findall(
                r'^([^\s:]+):(\d+):\d+: +(?:fatal error|error|  required|'
                r'required|in)', done.stdout, re.M):
            path = pathlib.Path(os.path.normpath(self.build / path))
            if path.is_relative_to(self.directory):
                found.add((str(path.relative_to(self.directory)), int(line)))
        if not found:
            raise RuntimeError(done.stdout[-4000:])
        return found

    def run(self, command, limit, environment=()):
        """'' when it passes, else what it failed with. `limit`: seconds of the
        processor, or ten times as long by the clock, whatever else runs."""
        def bound():
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=self.directory, start_new_session=True, preexec_fn=bound,
            env=dict(os.environ, GTEST_FAIL_FAST='1', **dict(environment)))
        try:
            code = process.wait(timeout=10 * limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return 'time limit'
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return 'time limit'
        if code < 0:
            return signal.Signals(-code).name
        return '' if code == 0 else f'exit {code}'

    def time(self, command, environment=()):
        """Seconds of the processor that it takes, and what it failed with."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        failed = self.run(command, 600, environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime -
                before.ru_stime), failed

    def read(self, path):
        return (self.directory / path).read_text()

    def plant(self, path, text):
        """Writes a file; restore() undoes it."""
        self._original.setdefault(path, self.read(path))
        self.write(path, text)

    def write(self, path, text):
        """Leaves a file alone that is so already: nothing is built for it."""
        to = self.directory / path
        if not to.exists() or to.read_text() != text:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(text)

    def patch(self, patch):
        """Applies a patch file; restore() undoes it."""
        names = subprocess.run(
            ['git', 'apply', '--numstat', patch], cwd=self.directory,
            capture_output=True, text=True, check=True).stdout
        for row in names.splitlines():
            path = row.split('\t')[2]
            self._original.setdefault(path, self.read(path))
        subprocess.run(['patch', '-p1', '-s', '-i', patch],
                       cwd=self.directory, check=True)

    def restore(self):
        for path, text in self._original.items():
            (self.directory / path).write_text(text)
        self._original.clear()
