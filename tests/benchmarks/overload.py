"""What is left of a cluster's capacity at twice the load: goodput, latency of
what was admitted, typed refusals, and the shares of two tenants.

The workers are processes whose backend is a timer (`--backend timer`), so that
the capacity is known and does not depend on the machine's mood. From this
folder, with a release build and the environment of tools/python_env:

    ../../build/python/bin/python overload.py

An answer takes a third of a second; requests wait for one second at most. A run
on a machine too busy to serve what the timers allow says so and shows nothing.
A request is good when its whole answer came before its deadline.
"""

import argparse
import asyncio
import collections
import dataclasses
import pathlib
import statistics
import sys
import tempfile
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'integration'))

from api import Api  # pylint: disable=wrong-import-position
from cluster import metrics  # pylint: disable=wrong-import-position
from cluster import total  # pylint: disable=wrong-import-position
from cluster import wait_until  # pylint: disable=wrong-import-position
from servers import Server  # pylint: disable=wrong-import-position

WORKERS = 2
SEQUENCES = 4  # of a worker at once
TOKENS = 32
PROMPT = [1000 + i for i in range(24)]
DEADLINE_S = 4.0
SETTLE_S = 1.0
# A step takes 10 ms and 20 us for each row: that many requests a second are
# served with full batches.
STEP_S = 0.010 + SEQUENCES * 20e-6
CAPACITY = WORKERS * SEQUENCES / (TOKENS * STEP_S)
CONFIG = """
version: 1
limits {
  max_concurrent_requests: 64
  max_queued_requests: 200
  max_queue_age_ms: 1000
  tenants { name: "three" weight: 3 }
  tenants { name: "one" weight: 1 }
}
"""


@dataclasses.dataclass
class Asked:
    """How one request went."""

    tenant: str
    begin: float
    first: float | None = None
    end: float = 0
    reason: str = ''  # 'ok', or the error's name


class Cluster:
    """A router and decode workers that prefill by themselves."""

    def __init__(self, folder):
        config = folder / 'router.textproto'
        config.write_text(CONFIG)
        self.router = Server('router', 'router', '--config', config,
                             '--local-prefill-tokens', 100000)
        self.workers = [
            Server(f'decode-{i}', 'decode', '--router', self.router.grpc,
                   '--backend', 'timer', '--max-sequences', SEQUENCES,
                   '--kv-memory', '256MiB', '--threads', 1)
            for i in range(WORKERS)]

    def __enter__(self):
        for server in [self.router, *self.workers]:
            server.start()
        for server in [self.router, *self.workers]:
            server.wait_started()
        wait_until(lambda: total(metrics(self.router.metrics),
                                 'penstock_worker_up') == WORKERS,
                   60, 'the workers are ready')
        return self

    def __exit__(self, *_):
        for server in [self.router, *self.workers]:
            server.close()


class Client:
    """Asks at a given rate, whatever comes back."""

    def __init__(self, address):
        self._api = Api(address)
        self._api.learn()
        self._address = address
        self._requests = {}

    def _request(self, tenant):
        if tenant not in self._requests:
            self._requests[tenant] = self._api.request(
                ids={'ids': PROMPT}, tenant=tenant,
                sampling={'temperature': 0},
                stop={'max_tokens': TOKENS,
                      'ignore_eos': True}).SerializeToString()
        return self._requests[tenant]

    def run(self, rate, seconds, tenants=('',)):
        return asyncio.run(self._run(rate, seconds, tenants))

    async def _run(self, rate, seconds, tenants):
        async with grpc.aio.insecure_channel(self._address) as channel:
            generate = channel.unary_stream(
                '/penstock.v1.Inference/Generate',
                request_serializer=None, response_deserializer=None)
            calls = []
            begin = time.monotonic()
            for i in range(int(rate * seconds)):
                await asyncio.sleep(
                    max(0, begin + i / rate - time.monotonic()))
                calls.append(asyncio.create_task(
                    self._ask(generate, tenants[i % len(tenants)])))
            issued = time.monotonic() - begin
            if issued > 1.05 * seconds:
                raise RuntimeError(f'the client was too slow: {issued:.1f} s '
                                   f'for a load of {seconds} s')
            return await asyncio.gather(*calls)

    async def _ask(self, generate, tenant):
        asked = Asked(tenant, time.monotonic())
        try:
            async for _ in generate(self._request(tenant), timeout=DEADLINE_S):
                if asked.first is None:
                    asked.first = time.monotonic()
            asked.reason = 'ok'
        except grpc.aio.AioRpcError as error:
            reason = self._api.describe(error).reason
            asked.reason = (f'untyped {error.code().name}'
                            if reason in ('UNSPECIFIED', 'UNKNOWN') else reason)
        asked.end = time.monotonic()
        return asked


def goodput(asked, seconds):
    """Good answers a second, from when the first requests have been answered
    until no more come: what the queue still held then would flatter short
    runs."""
    begin = min(a.begin for a in asked)
    good = sum(a.reason == 'ok' and SETTLE_S <= a.end - begin <= seconds
               for a in asked)
    return good / (seconds - SETTLE_S)


def describe(name, asked, rate, seconds):
    good = [a for a in asked if a.reason == 'ok']
    reasons = collections.Counter(a.reason for a in asked)
    line = (f'{name:24} {rate:6.1f} asked/s  {goodput(asked, seconds):6.1f} '
            'good/s')
    if len(good) > 1:
        spans = statistics.quantiles([a.end - a.begin for a in good], n=100)
        firsts = statistics.quantiles([a.first - a.begin for a in good], n=100)
        line += (f'  first event p50 {firsts[49]:.2f} p99 {firsts[98]:.2f} s'
                 f'  whole p50 {spans[49]:.2f} p99 {spans[98]:.2f} s')
    print(f'{line}  {dict(reasons)}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--sweep-seconds', type=float, default=15)
    arguments = parser.parse_args()
    print(f'{WORKERS} workers of {SEQUENCES} sequences, {TOKENS} tokens a '
          f'request: {CAPACITY:.1f} requests/s at best')
    with tempfile.TemporaryDirectory() as folder, \
            Cluster(pathlib.Path(folder)) as cluster:
        client = Client(cluster.router.grpc)
        peak = 0
        for share in (0.5, 0.8, 1.0, 1.2):
            rate = share * CAPACITY
            asked = client.run(rate, arguments.sweep_seconds)
            describe(f'{share:.1f} of the capacity', asked, rate,
                     arguments.sweep_seconds)
            peak = max(peak, goodput(asked, arguments.sweep_seconds))
        if peak < 0.9 * CAPACITY:
            print('the machine is too busy for its timers: nothing is shown')
            return 2
        rate = 2 * CAPACITY
        asked = client.run(rate, arguments.seconds)
        describe('twice the capacity', asked, rate, arguments.seconds)
        kept = goodput(asked, arguments.seconds) / peak
        untyped = sum(a.reason.startswith('untyped') for a in asked)
        print(f'goodput kept: {100 * kept:.1f}% of its peak of {peak:.1f}/s; '
              f'{untyped} refusals without a reason')
        asked = client.run(rate, arguments.seconds, ('three', 'one'))
        describe('two tenants, 3:1', asked, rate, arguments.seconds)
        good = collections.Counter(a.tenant for a in asked if a.reason == 'ok')
        ratio = good['three'] / max(1, good['one'])
        print(f'served: {dict(good)}, {ratio:.2f}:1')
        right = kept >= 0.9 and untyped == 0 and 2.7 <= ratio <= 3.3
        print('as it should be' if right else 'NOT as it should be')
        return 0 if right else 1


if __name__ == '__main__':
    sys.exit(main())
