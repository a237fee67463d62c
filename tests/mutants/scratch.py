"""A copy of the sources in which bugs are planted, built without gRPC and
without optimisation that costs more than it gives."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Scratch:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.build = self.directory / 'build'
        self._original = {}

    def prepare(self):
        """Copies what git knows, as it is in the working tree."""
        files = subprocess.run(
            ['git', 'ls-files', '-z', '--cached', '--others',
             '--exclude-standard'], cwd=ROOT, check=True,
            capture_output=True, text=True).stdout.split('\0')
        for name in filter(None, files):
            if not (ROOT / name).is_file():
                continue
            to = self.directory / name
            to.parent.mkdir(parents=True, exist_ok=True)
            if (not to.exists()
                    or to.read_bytes() != (ROOT / name).read_bytes()):
                shutil.copyfile(ROOT / name, to)
                shutil.copymode(ROOT / name, to)
        subprocess.run(
            ['cmake', '-G', 'Ninja', '-S', self.directory, '-B', self.build,
             '-DPENSTOCK_RPC=OFF', '-DBUILD_TESTING=ON',
             '-DCMAKE_BUILD_TYPE=', '-DCMAKE_CXX_FLAGS=-O1 -w'],
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

    def run(self, command, limit):
        """'' when it passes, else what it failed with."""
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=self.directory, start_new_session=True,
            env=dict(os.environ, GTEST_FAIL_FAST='1'))
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return 'time limit'
        if code < 0:
            return signal.Signals(-code).name
        return '' if code == 0 else f'exit {code}'

    def time(self, command, limit):
        start = time.monotonic()
        failed = self.run(command, limit)
        return time.monotonic() - start, failed

    def read(self, path):
        return (self.directory / path).read_text()

    def write(self, path, text):
        self._original.setdefault(path, self.read(path))
        (self.directory / path).write_text(text)

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
