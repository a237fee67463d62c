"""A cluster on which faults are practised: who is in it, what can be done to
it, and who was away when."""

import dataclasses
import functools
import heapq
import itertools
import random
import tempfile
import threading
import time

import cluster
from cluster import total
from cluster import wait_until
from servers import Server
from servers import stable_port
from tcp_proxy import TcpProxy

POLL_S = 0.1
PAGES_IN_USE = ('active', 'in_transfer', 'quarantined')
# Small enough for a burst of long requests to fill.
KV_MEMORY = '40MiB'
# Of links between prefill and decode, so that transfers take long enough to be
# hit: a page of 16 tokens has 368,640 bytes.
DATA_RATE = 24 << 20


class Host:
    """Two prefill and two decode workers. What others say to them, and the
    router's ear for them, goes through proxies. KV travels to decode-0 over
    TCP, to decode-1 over shared memory."""

    def __init__(self, kv_memory=KV_MEMORY, logs=None):
        self._kv_memory = kv_memory
        self._logs = logs
        # Workers find each other by a key that strangers lack.
        self._key = tempfile.NamedTemporaryFile(mode='w', suffix='.key')
        self._key.write('the key of one test')
        self._key.flush()
        self.proxies = {}
        self.router = Server('router', 'router', '--cluster-key-file',
                             self._key.name, http=True, logs=logs)
        self.servers = {'router': self.router}
        for role in ('prefill', 'decode'):
            for i in range(2):
                self._add_worker(f'{role}-{i}', role)

    def _add_worker(self, name, role):
        data = stable_port()
        control = f'127.0.0.1:{stable_port()}'
        registry = f'127.0.0.1:{stable_port()}'
        server = Server(
            name, role, '--router', registry, '--advertise', control,
            '--data-listen', f'127.0.0.1:{data}', '--data-advertise',
            '127.0.0.2', '--threads', 1, '--host-workers', 4, '--kv-memory',
            self._kv_memory, '--cluster-key-file', self._key.name,
            '--transport', 'tcp' if name == 'decode-0' else 'auto',
            logs=self._logs)
        self.servers[name] = server
        self.proxies[name, 'control'] = TcpProxy(control, server.grpc)
        self.proxies[name, 'registry'] = TcpProxy(registry, self.router.grpc)
        self.proxies[name, 'data'] = TcpProxy(
            f'127.0.0.2:{data}', f'127.0.0.1:{data}', DATA_RATE)

    def start(self):
        for server in self.servers.values():
            server.start()
        for server in self.servers.values():
            server.wait_started()

    def of_role(self, role):
        return [s.name for s in self.servers.values() if s.role == role]

    def ready(self):
        """Names of the workers that the router would use; None: no router."""
        try:
            page = cluster.metrics(self.router.metrics)
        except OSError:
            return None
        return {name for name in self.servers
                if total(page, 'penstock_worker_up', worker=name) == 1}

    def all_ready(self):
        ready = self.ready()
        return ready is not None and len(ready) == len(self.servers) - 1

    def at_rest(self, name):
        """Whether a worker runs nothing and holds no page in use; every page
        is accounted for."""
        values = cluster.metrics(self.servers[name].metrics)
        by_state = {state: total(values, 'penstock_blocks', state=state)
                    for state in ('free', 'cached', *PAGES_IN_USE)}
        return (
            not any(by_state[state] for state in PAGES_IN_USE)
            and not any(total(values, f'vllm:num_requests_{state}')
                        for state in ('running', 'waiting'))
            and sum(by_state.values()) == cluster.blocks(values))

    def close(self):
        for server in self.servers.values():
            server.close()
        for proxy in self.proxies.values():
            proxy.close()
        self._key.close()


@dataclasses.dataclass
class Absence:
    """When a server was not there for others, on the monotonic clock."""

    server: str
    begin: float
    end: float = float('inf')  # found at work again


class Watch:
    """Finds out who is at work again, all the time. Thread-safe."""

    # A loss is known to the router after this at the latest, so that what it
    # says of a worker then is of the life that it has now.
    NOTICED_S = 0.5

    def __init__(self, host):
        self._host = host
        self._lock = threading.Lock()
        self._absences = []  # guarded by the lock
        self._held = set()  # whose links are silent; guarded by the lock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        """When everybody is back."""
        wait_until(lambda: not self.away(), 10, 'nobody is away')
        self._stop.set()
        self._thread.join()

    def gone(self, name, held=False):
        with self._lock:
            self._absences.append(Absence(name, time.monotonic()))
            if held:
                self._held.add(name)

    def released(self, name):
        with self._lock:
            self._held.discard(name)

    def away(self):
        with self._lock:
            return {a.server for a in self._absences if a.end == float('inf')}

    def absences(self):
        with self._lock:
            return list(self._absences)

    def all_away_at_once(self, names, begin, end):
        """Whether at some moment of [begin, end] none of `names` was there."""
        with self._lock:
            moments = [begin] + [
                a.begin for a in self._absences if begin <= a.begin <= end]
            return any(
                all(any(a.server == name and a.begin <= moment <= a.end
                        for a in self._absences) for name in names)
                for moment in moments)

    def _run(self):
        while not self._stop.wait(POLL_S):
            asked = time.monotonic()
            if not self.away() or self._host.router.frozen:
                continue
            ready = self._host.ready()
            if ready is not None:
                self._note(ready, asked)

    def _note(self, ready, asked):
        with self._lock:
            lacking = set()
            for absence in self._absences:
                if absence.end != float('inf') or absence.server == 'router':
                    continue
                if (absence.server in ready and absence.server not in self._held
                        and not self._host.servers[absence.server].frozen
                        and asked > absence.begin + self.NOTICED_S):
                    absence.end = time.monotonic()
                else:
                    lacking.add(absence.server)
            # The router is back when it knows everybody who is there.
            known = len(ready | lacking) == len(self._host.servers) - 1
            for absence in self._absences:
                if (absence.server == 'router' and known
                        and absence.end == float('inf')
                        and asked > absence.begin):
                    absence.end = time.monotonic()


class Chaos:
    """Carries out faults that a seed decides, until the time is up and all of
    them are mended. Used by one thread."""

    KINDS = {'freeze': 3, 'cut': 4, 'hold': 2, 'burst': 1, 'drain': 2}
    ROLES = {'router': 1, 'prefill': 2, 'decode': 3}  # whom a kill is for
    OTHER_EVERY_S = 2.5
    # Pages to others travel in shared memory.
    LINKS = [('decode-0', 'data')] * 3 + [
        (f'{role}-{i}', link) for role in ('prefill', 'decode')
        for i in range(2) for link in ('control', 'registry')]

    def __init__(self, host, watch, load, seed, log):
        self._host = host
        self._watch = watch
        self._load = load
        self._rng = random.Random(seed)
        self._log = log
        self._queue = []
        self._order = itertools.count()
        self.counts = {}  # by kind
        self._effects = []  # (begin, end), on the monotonic clock

    def run(self, seconds, kills):
        begin = time.monotonic()
        for i in range(kills):
            role, = self._rng.choices(list(self.ROLES), self.ROLES.values())
            self._at(begin + seconds * (i + self._rng.random()) / kills,
                     functools.partial(self._kill, role))
        others = max(8, int(seconds / self.OTHER_EVERY_S))
        # Each kind is there at least once.
        kinds = list(self.KINDS) + self._rng.choices(
            list(self.KINDS), self.KINDS.values(), k=others - len(self.KINDS))
        for kind in kinds:
            self._at(begin + seconds * self._rng.random(),
                     getattr(self, f'_{kind}'))
        pace = threading.Event()
        while self._queue:
            wait = self._queue[0][0] - time.monotonic()
            if wait > 0:
                pace.wait(wait)
            _, _, act = heapq.heappop(self._queue)
            act()

    def met(self, begin, end):
        """How many faults somebody met who was there from `begin` to `end`."""
        return sum(first <= end and begin <= last
                   for first, last in self._effects)

    def _at(self, moment, act):
        heapq.heappush(self._queue, (moment, next(self._order), act))

    def _after(self, seconds, act):
        self._at(time.monotonic() + seconds, act)

    def _count(self, kind, what, seconds=0):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        now = time.monotonic()
        # Others take a moment to notice.
        self._effects.append((now, now + seconds + 1))
        self._log(f'{kind} {what}' + f' for {seconds:.1f} s' * (seconds > 0))

    def _pick(self, again, names=None):
        """Somebody who can be spared: not the last one of its role. Without
        one, `again` is tried a little later."""
        away = self._watch.away()
        spare = [
            name for name in names or self._host.servers
            if name not in away and (
                name == 'router' or away.isdisjoint(
                    self._host.of_role(self._host.servers[name].role)))]
        if spare:
            return self._rng.choice(spare)
        self._after(POLL_S, again)
        return None

    def _kill(self, role):
        name = self._pick(functools.partial(self._kill, role),
                          self._host.of_role(role))
        if name is None:
            return
        # Now and then a whole role at once.
        both = role != 'router' and self._rng.random() < 0.1
        for victim in self._host.of_role(role) if both else [name]:
            self._watch.gone(victim)
            self._kill_and_start(victim)

    def _kill_and_start(self, name):
        server = self._host.servers[name]
        if server.kill():
            self._count(f'kill {server.role}', name)
        self._after(self._rng.uniform(0.1, 1.5), server.start)

    def _drain(self):
        name = self._pick(self._drain, sorted(
            set(self._host.servers) - {'router'}))
        if name is None:
            return
        self._watch.gone(name)
        server = self._host.servers[name]
        server.drain()
        self._count('drain', name)

        def start_again():
            if server.running():
                self._after(POLL_S, start_again)
            else:
                server.start()
        start_again()

    def _freeze(self):
        name = self._pick(self._freeze)
        if name is None:
            return
        self._watch.gone(name)
        self._host.servers[name].freeze()
        seconds = self._rng.uniform(1, 4)
        self._count('freeze', name, seconds)
        # It does not always wake up.
        dies = self._rng.random() < 0.25
        self._after(seconds, functools.partial(self._kill_and_start, name)
                    if dies else self._host.servers[name].thaw)

    def _cut(self):
        name, link = self._rng.choice(self.LINKS)
        if link != 'data':
            if self._pick(self._cut, [name]) is None:
                return
            self._watch.gone(name)
        self._count('cut', f'{link} of {name}')
        again = self._rng.randrange(1, 6) if link == 'data' else 1

        def cut(left):
            self._host.proxies[name, link].cut()
            if left > 1:
                self._after(0.05, lambda: cut(left - 1))
        cut(again)

    def _hold(self):
        name = self._pick(self._hold, sorted(
            set(self._host.servers) - {'router'}))
        if name is None:
            return
        link = self._rng.choice(('control', 'registry', 'data')
                                if name == 'decode-0'
                                else ('control', 'registry'))
        self._watch.gone(name, held=True)
        self._host.proxies[name, link].hold()
        seconds = self._rng.uniform(1, 5)
        self._count('hold', f'{link} of {name}', seconds)

        def release():
            self._host.proxies[name, link].release()
            self._watch.released(name)
        self._after(seconds, release)

    def _burst(self):
        self._count('burst', 'of long requests')
        self._load.burst()
