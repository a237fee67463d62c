#!/usr/bin/env python3
"""Compares `penstock up` with another OpenAI-compatible server, over HTTP.

  http_vs_peer.py --model MODEL.gguf \\
    --peer 'llama-server -m {model} --port {port} -t 2 -np 8 -c 16384'

Both servers run; while one is asked the other waits. For each number of
streams they take turns, and the ratios of the pairs are printed: medians with
the lowest and highest. `{model}` and `{port}` are filled in. With several
peers each figure is held against the better one's.
"""

import argparse
import asyncio
import contextlib
import functools
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import completions
import paired

_OURS = '{penstock} up {model} --http 127.0.0.1:{port} --grpc 127.0.0.1:0'
# Figure: whether more is better, and the floor or ceiling of the ratio at
# several streams and at one.
_FIGURES = {
    'tokens_per_s': ('tokens/s', True, 3, None),
    'first_token_ms': ('first token, ms', False, 1 / 3, 1),
    'gap_ms': ('between tokens, ms', False, None, 1),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def answers(port):
    try:
        with urllib.request.urlopen(f'http://127.0.0.1:{port}/v1/models',
                                    timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def server(command, deadline_s):
    """A server for as long as it lasts, with its port."""
    port = free_port()
    process = subprocess.Popen(
        shlex.split(command.replace('{port}', str(port))),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + deadline_s
        while not answers(port):
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f'does not serve: {command}')
            time.sleep(0.1)
        yield port
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def compare(streams, pairs):
    """Rows of the table; `pairs` are figures of ours and of each peer."""
    for name, (title, more, several, alone) in _FIGURES.items():
        values = [[getattr(side, name) for side in pair] for pair in pairs]
        best = [(max if more else min)(side[1:]) for side in values]
        ours = [side[0] for side in values]
        ratio = paired.summary([a / b for a, b in zip(ours, best)])
        bar = alone if streams == 1 else several
        met = bar is None or (ratio.median >= bar if more
                              else ratio.median <= bar)
        verdict = '' if bar is None else (
            f'{">=" if more else "<="} {bar:.2f} {"met" if met else "not"}')
        print(f'{streams:3} {title:19} {ratio.median:6.2f} {ratio.low:7.2f}'
              f' {ratio.high:8.2f}  {verdict:12}'
              f' {paired.summary(ours).median:9.1f}'
              f' {paired.summary(best).median:9.1f}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--model', required=True)
    parser.add_argument('--peer', action='append', default=[],
                        help='command of a server, in one word; repeated')
    parser.add_argument('--penstock', default=paired.PENSTOCK)
    parser.add_argument('--ours', default=_OURS)
    parser.add_argument('--up', default='', metavar='OPTIONS',
                        help='more options of penstock up')
    parser.add_argument('--model-name', default='m',
                        help='that requests name')
    parser.add_argument('--streams', default='1,8')
    parser.add_argument('--requests', type=int, default=2,
                        help='of each stream, one after the other')
    parser.add_argument('--prompt', type=int, default=200)
    parser.add_argument('--answer', type=int, default=64)
    parser.add_argument('--pairs', type=int, default=5)
    parser.add_argument('--start-timeout', type=float, default=120)
    options = parser.parse_args()
    if not options.peer:
        parser.error('--peer: at least one')

    ours = f'{options.ours} --model-name {options.model_name} {options.up}'
    commands = [command.replace('{model}', os.path.abspath(options.model))
                .replace('{penstock}', str(options.penstock))
                for command in [ours, *options.peer]]
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(server(command, options.start_timeout))
                 for command in commands]

        def ask(port, streams, requests):
            return asyncio.run(completions.load(
                port, options.model_name, streams, requests, options.prompt,
                options.answer))

        for port in ports:
            ask(port, 1, 1)
        print(f'{paired.processor()}; prompt {options.prompt}, answer '
              f'{options.answer}, {options.pairs} pairs\n')
        print(f'{"":23} {"ratio":>6} {"lowest":>7} {"highest":>8}  {"":12}'
              f' {"ours":>9} {"peer":>9}')
        for streams in [int(n) for n in options.streams.split(',')]:
            sides = [functools.partial(ask, port, streams, options.requests)
                     for port in ports]
            compare(streams, [paired.in_turn(pair, sides)
                              for pair in range(options.pairs)])


if __name__ == '__main__':
    main()
