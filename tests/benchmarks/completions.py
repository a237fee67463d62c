"""Streams of /v1/completions, with no more than the standard library: a client
that costs little beside the server it measures."""

import asyncio
import dataclasses
import json
import random
import statistics
import time


@dataclasses.dataclass
class Stream:
    """When it was asked, and when each event with text came."""
    asked: float
    times: list
    tokens: int  # of the answer, as the server counts them

    def first_token_s(self):
        return self.times[0] - self.asked

    def gaps_s(self):
        return [b - a for a, b in zip(self.times, self.times[1:])]


@dataclasses.dataclass
class Figures:
    tokens_per_s: float
    first_token_ms: float  # medians
    gap_ms: float


def prompt(count):
    """Ids that nothing shares, of ordinary tokens."""
    return [random.randrange(1000, 40000) for _ in range(count)]


async def stream(port, tokens, answer, model, times=None):
    """`times`: a list that others see grow."""
    body = json.dumps({
        'model': model, 'prompt': tokens, 'max_tokens': answer, 'stream': True,
        'temperature': 0, 'ignore_eos': True,
        'stream_options': {'include_usage': True}}).encode()
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    try:
        writer.write(b'POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n'
                     b'Content-Type: application/json\r\nConnection: close\r\n'
                     b'Content-Length: %d\r\n\r\n' % len(body) + body)
        asked = time.perf_counter()
        status = await reader.readline()
        if b' 200 ' not in status:
            raise RuntimeError(status + await reader.read(2000))
        times, usage = [] if times is None else times, {}
        async for line in reader:
            if not line.startswith(b'data: {'):
                continue
            now = time.perf_counter()
            event = json.loads(line[len(b'data: '):])
            usage = event.get('usage') or usage
            if event.get('choices') and (event['choices'][0].get('text')
                                         or not times):
                times.append(now)
    finally:
        writer.close()
    return Stream(asked, times, usage['completion_tokens'])


async def load(port, model, streams, requests, prompt_tokens, answer):
    """`streams` clients at once, each of which asks `requests` times."""
    async def client():
        return [await stream(port, prompt(prompt_tokens), answer, model)
                for _ in range(requests)]
    start = time.perf_counter()
    done = sum(await asyncio.gather(*[client() for _ in range(streams)]), [])
    seconds = time.perf_counter() - start
    gaps = [gap for one in done for gap in one.gaps_s()]
    return Figures(
        sum(one.tokens for one in done) / seconds,
        1e3 * statistics.median(one.first_token_s() for one in done),
        # By token: some servers send several at once.
        1e3 * statistics.mean(
            (one.times[-1] - one.times[0]) / (one.tokens - 1)
            for one in done) if gaps else 0)
