"""Servers of one cluster as processes that may die: each has ports of its own
for all of its lives, so that it comes back at the same address."""

import dataclasses
import json
import os
import pathlib
import random
import select
import signal
import socket
import subprocess
import tempfile
import time

from cluster import BIN
from cluster import MODEL
from cluster import START_S
from cluster import STOP_S

PAGE_BYTES = os.sysconf('SC_PAGE_SIZE')


# Hold what `stable_port` gave: the UDP ports of the same numbers, which servers
# do not use, so that no other run takes the port of one that is away.
_reservations = []


def stable_port():
    """A port that stays free for a server that is away for a while: no outgoing
    connection is given it, and no other run."""
    ephemeral = pathlib.Path('/proc/sys/net/ipv4/ip_local_port_range')
    first_ephemeral = int(ephemeral.read_text().split()[0])
    # Not the tests' seed: two runs on one machine must not meet.
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(10000, max(first_ephemeral, 11000))
        reservation = socket.socket(type=socket.SOCK_DGRAM)
        try:
            reservation.bind(('127.0.0.1', port))
            for host in ('127.0.0.1', '127.0.0.2'):
                with socket.socket() as listener:
                    listener.bind((host, port))
        except OSError:
            reservation.close()
            continue
        _reservations.append(reservation)
        return port


@dataclasses.dataclass(frozen=True)
class Usage:
    """What a process holds of its host."""

    resident_bytes: int
    descriptors: int
    threads: int


class Server:
    """One server. Killed and started any number of times; what it wrote in all
    of its lives is kept. Used by one thread, but for the plain attributes."""

    def __init__(self, name, role, *arguments, http=False, logs=None):
        self.name = name
        self.role = role
        self.grpc = f'127.0.0.1:{stable_port()}'
        self.metrics = f'127.0.0.1:{stable_port()}'
        self.http = f'127.0.0.1:{stable_port()}' if http else ''
        self.lives = 0
        self.frozen = False
        self.unexpected = []  # ends that nobody here asked for
        self._arguments = [
            str(BIN / f'penstock-{role}'), '--grpc', self.grpc, '--metrics',
            self.metrics, *map(str, arguments)]
        if role != 'kvstore':
            self._arguments += ['--model', str(MODEL)]
        if http:
            self._arguments += ['--http', self.http]
        if role != 'router':
            self._arguments += ['--name', name]
        # For the caller to keep, in the folder that it gave.
        self._log = (tempfile.TemporaryFile(mode='a+') if logs is None
                     else open(pathlib.Path(logs) / f'{name}.log', mode='a+',
                               encoding='utf-8'))
        self._process = None
        self._draining = False

    @property
    def pid(self):
        return self._process.pid

    def start(self):
        """Starts it; `wait_started` says when it listens."""
        self.lives += 1
        self._log.write(f'--- life {self.lives}\n')
        self._log.flush()
        self._process = subprocess.Popen(
            self._arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self._log, text=True)

    def wait_started(self):
        ready, _, _ = select.select([self._process.stdout], [], [], START_S)
        line = self._process.stdout.readline() if ready else ''
        if not line:
            raise AssertionError(f'{self.name} does not start:\n{self.log()}')
        return json.loads(line)

    def running(self):
        """Notes an end that came by itself."""
        if self._process is None:
            return False
        status = self._process.poll()
        if status is not None:
            if not self._draining or status != 0:
                self.unexpected.append((self.lives, status))
            self._forget()
        return status is None

    def kill(self):
        """kill -9; True if it was there to be killed."""
        if not self.running():
            return False
        self._process.kill()
        status = self._process.wait(STOP_S)
        if status != -signal.SIGKILL:
            self.unexpected.append((self.lives, status))
        self._forget()
        return True

    def freeze(self):
        if self.running():
            self._process.send_signal(signal.SIGSTOP)
            self.frozen = True

    def thaw(self):
        if self.running():
            self._process.send_signal(signal.SIGCONT)
        self.frozen = False

    def drain(self):
        """Lets it end; `wait_ended` says how it did, `running` whether it still
        has to."""
        if self.running():
            self._draining = True
            self._process.send_signal(signal.SIGTERM)

    def wait_ended(self):
        """The exit status; None if it does not run."""
        if self._process is None:
            return None
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait(STOP_S)
        finally:
            self._forget()

    def usage(self):
        proc = pathlib.Path(f'/proc/{self.pid}')
        resident = int((proc / 'statm').read_text().split()[1])
        return Usage(resident * PAGE_BYTES, len(list((proc / 'fd').iterdir())),
                     len(list((proc / 'task').iterdir())))

    def log(self):
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 6000))
        text = self._log.read()
        self._log.seek(0, os.SEEK_END)
        return text

    def close(self):
        if self.running():
            self._process.kill()
            self._process.wait(STOP_S)
            self._forget()
        self._log.close()

    def _forget(self):
        self._process.stdout.close()
        self._process = None
        self._draining = False
        self.frozen = False
