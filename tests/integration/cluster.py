"""A cluster of real processes on loopback, for tests: `penstock up` on free
ports, watched with deadlines and ended by process id."""

import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get('PENSTOCK_BIN', ROOT / 'build/release/bin'))
MODEL = ROOT / 'models/SmolLM2-135M-Instruct.Q4_1.gguf'
CASES = ROOT / 'tests/data/cases'

START_S = 90
STOP_S = 30


def penstock(*arguments, stdin='', timeout=60):
    """One run of the penstock command to its end."""
    return subprocess.run(
        [str(BIN / 'penstock'), *map(str, arguments)], input=stdin,
        capture_output=True, text=True, timeout=timeout, check=False)


def wait_until(condition, seconds, what):
    """Asks again and again until `condition()` is true; returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f'not within {seconds} s: {what}')
        # The pace of asking, not a wait for anything to have happened.
        select.select([], [], [], 0.05)


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def metrics(address):
    """{'name{labels}': value} of a server's metrics page."""
    with urllib.request.urlopen(f'http://{address}/metrics', timeout=10) as page:
        text = page.read().decode()
    values = {}
    for line in text.splitlines():
        if line and not line.startswith('#'):
            name, value = line.rsplit(' ', 1)
            values[name] = float(value)
    return values


def total(values, name, **labels):
    """Sum of a metric over all series that carry the given labels."""
    found = [
        value for series, value in values.items()
        if series.split('{')[0] == name
        and all(f'{key}="{wanted}"' in series for key, wanted in labels.items())
    ]
    return sum(found)


def blocks(values):
    """Blocks of a worker's arena, which a label tells."""
    series, = [name for name in values if name.startswith(
        'vllm:cache_config_info{')]
    return int(re.search(r'num_gpu_blocks="(\d+)"', series).group(1))


class Cluster:
    """`penstock up` with a router, prefill and decode workers."""

    def __init__(self, *flags):
        # A file, so that nobody has to read it for the servers to go on.
        self._log = tempfile.TemporaryFile(mode='w+')
        self._up = subprocess.Popen(
            [str(BIN / 'penstock'), 'up', str(MODEL), '--json',
             '--grpc', '127.0.0.1:0', '--http', '127.0.0.1:0',
             '--start-timeout', str(START_S), '--drain-timeout', str(STOP_S),
             *map(str, flags)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self._log, text=True)
        try:
            self.description = json.loads(self._first_line())
        except Exception:
            self.kill()
            raise AssertionError('no cluster:\n' + self.log()) from None
        self.grpc = self.description['grpc']
        self.metrics = self.description['metrics']
        self.http = self.description['http']
        self.servers = {
            server['name']: server for server in self.description['servers']}

    def _first_line(self):
        ready, _, _ = select.select([self._up.stdout], [], [], START_S + 10)
        return self._up.stdout.readline() if ready else ''

    def log(self):
        self._log.seek(0)
        return self._log.read()

    def running(self):
        return self._up.poll() is None

    def signal(self, number=signal.SIGTERM):
        self._up.send_signal(number)

    def signal_server(self, name, number):
        os.kill(self.servers[name]['pid'], number)

    def pid(self, name):
        """Of the life that a server has now; None: it is between two."""
        children = pathlib.Path(
            f'/proc/{self._up.pid}/task/{self._up.pid}/children')
        for child in children.read_text().split():
            try:
                arguments = pathlib.Path(f'/proc/{child}/cmdline').read_text()
            except OSError:  # ended just now
                continue
            if f'\0--name\0{name}\0' in arguments:
                return int(child)
        return None

    def wait(self, seconds=2 * STOP_S):
        return self._up.wait(seconds)

    def stop(self):
        """Drains; returns the exit status."""
        if self.running():
            self.signal()
        if self._up.stdout.closed:  # killed and waited for
            return self._up.returncode
        try:
            return self.wait()
        finally:
            self.kill()

    def kill(self):
        if self.running():
            self._up.kill()
        self._up.wait(STOP_S)
        self._up.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.stop()
        finally:
            if kind is not None:
                print(self.log()[-8000:])
            self._log.close()
