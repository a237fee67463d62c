"""Servers for the comparisons of this folder. Each starts once, and those that
compute even when nobody asks are stopped between their turns."""

import contextlib
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

_TICKS = os.sysconf('SC_CLK_TCK')


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def _stat(pid):
    """Fields of /proc/PID/stat from the third, the state, on."""
    text = pathlib.Path(f'/proc/{pid}/stat').read_text()
    return text.rpartition(')')[2].split()


class Server:
    """A server with all processes that it starts, in a session of its own."""

    def __init__(self, name, command, ready, log, stops):
        """`ready`: path that answers 200 once it serves; `log`: a folder;
        `stops`: whether its processes stop between turns."""
        self.name = name
        self._stops = stops
        self.port = free_port()
        self._ready = ready
        self._log = pathlib.Path(log) / f'{name}.log'
        with self._log.open('w') as output:
            self._process = subprocess.Popen(
                shlex.split(command.replace('{port}', str(self.port))),
                stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True)

    def processes(self):
        """Those of its session: it leads it."""
        found = []
        for entry in os.listdir('/proc'):
            with contextlib.suppress(OSError):
                if entry.isdigit() and (
                        int(_stat(entry)[3]) == self._process.pid):
                    found.append(int(entry))
        return found

    def cpu_s(self):
        """CPU time of its running processes."""
        ticks = 0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                stat = _stat(pid)
                ticks += int(stat[11]) + int(stat[12])
        return ticks / _TICKS

    def wait(self, deadline_s):
        end = time.monotonic() + deadline_s
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                sys.exit(f'{self.name} does not serve: see {self._log}')
            time.sleep(0.1)

    def _answers(self):
        try:
            with urllib.request.urlopen(
                    f'http://127.0.0.1:{self.port}{self._ready}',
                    timeout=5) as response:
                return response.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def _signal(self, number):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    @contextlib.contextmanager
    def turn(self):
        """While it lasts, the server runs."""
        if self._stops:
            self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            if self._stops:
                self._signal(signal.SIGSTOP)

    def end(self):
        self._signal(signal.SIGCONT)
        self._process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=60)
        # What a leader that failed has left behind.
        self._signal(signal.SIGKILL)
        self._process.wait()
