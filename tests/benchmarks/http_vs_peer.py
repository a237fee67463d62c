#!/usr/bin/env python3
"""Compares `penstock up` with other OpenAI-compatible servers, over HTTP.

  http_vs_peer.py --model MODEL.gguf \\
    --peer llama-server /health \\
      'llama-server -m {model} --port {port} -t 2 -np 8 -c 40960' \\
    --peer vLLM /health 'python -m vllm.entrypoints.openai.api_server ...'

Each peer is a name, the path that answers 200 once it serves, and a command in
one word, in which `{model}` and `{port}` are filled in. All start once, on the
same cores, and take turns; peers are stopped while others are asked. Prints a
table for documents: medians with the lowest and highest, and ratios, each to
the better peer of the same round.

With --long-prompt the table is of a prompt that arrives beside four running
answers instead; see long_prompt.py.
"""

import argparse
import asyncio
import collections
import contextlib
import os
import sys
import tempfile
import time

import completions
import long_prompt
import paired
import servers

_OURS = '{penstock} up {model} --http 127.0.0.1:{port} --grpc 127.0.0.1:0'

# A row of the table: the figure's key, its title, whether more is better, and
# the floor or ceiling of the ratio, of which the last may not be reached.
Row = collections.namedtuple('Row', 'key title more bar')


def _load_rows(streams):
    """Of `streams` at once."""
    title = f'{streams} streams: ' if streams > 1 else '1 stream: '
    alone = 1 if streams == 1 else None
    return [
        Row((streams, 'tokens_per_s'), f'{title}tokens/s', True,
            None if alone else 3),
        Row((streams, 'first_token_ms'), f'{title}first token, ms', False,
            alone or 1 / 3),
        Row((streams, 'gap_ms'), f'{title}between tokens, ms', False, alone)]


_LONG_PROMPT_ROWS = [
    Row(long_prompt.USUAL_GAP, 'usual gap of an answer, ms', False, None),
    Row(long_prompt.LONGEST_GAP, 'longest gap, ms', False, None),
    Row(long_prompt.ALONE, "the prompt's first token, alone, s", False, None),
    Row(long_prompt.BESIDE, 'the same beside answers, s', False, None),
    Row(long_prompt.RATIO, 'beside / alone', False, None)]


def _range(values):
    def text(value):
        return f'{value:.{2 - (value >= 10) - (value >= 100)}f}'
    value = paired.summary(values)
    return f'{text(value.median)} ({text(value.low)} to {text(value.high)})'


def _bar(row, ratios):
    """What the ratio should be, and whether its median is."""
    if row.bar is None:
        return ''
    median = paired.summary(ratios).median
    if row.more:
        return f'>= {row.bar:.2f}, {"met" if median >= row.bar else "not met"}'
    return f'< {row.bar:.2f}, {"met" if median < row.bar else "not met"}'


def print_table(names, rows, rounds):
    """`rounds`: for each round, for each of `names`, {key: figure}."""
    print(f'| | {" | ".join(names)} | ratio to the better peer | aim |')
    print('|---' * (len(names) + 3) + '|')
    for row in rows:
        sides = [[side[row.key] for side in one] for one in rounds]
        best = max if row.more else min
        ratios = [side[0] / best(side[1:]) for side in sides]
        cells = [row.title, *[_range(values) for values in zip(*sides)],
                 _range(ratios), _bar(row, ratios)]
        print(f'| {" | ".join(cells)} |')


def _measure_loads(server, options):
    figures = {}
    for streams in options.streams:
        load = asyncio.run(completions.load(
            server.port, options.model_name, streams, options.requests,
            options.prompt, options.answer))
        for row in _load_rows(streams):
            figures[row.key] = getattr(load, row.key[1])
    return figures


def _measure_long_prompt(server, options):
    return asyncio.run(long_prompt.measure(argparse.Namespace(
        port=server.port, model=options.model_name, prompt=3800, streams=4,
        tokens=250)))


def _start(stack, options):
    """Ours and then the peers, ready and warm, each in its turn."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < options.cores:
        sys.exit(f'--cores {options.cores}: there are {len(cores)}')
    ours = f'{options.ours} --model-name {options.model_name} {options.up}'
    log = tempfile.mkdtemp(prefix='http_vs_peer.')
    print(f'logs of the servers: {log}', file=sys.stderr)
    started = []
    for name, ready, command in [('penstock', '/health', ours),
                                 *options.peer]:
        words = command.replace('{model}', os.path.abspath(options.model))
        os.sched_setaffinity(0, cores[:options.cores])
        server = servers.Server(
            name, words.replace('{penstock}', str(options.penstock)), ready,
            log, stops=bool(started))
        os.sched_setaffinity(0, cores)
        stack.callback(server.end)
        started.append(server)
        with server.turn():
            server.wait(options.start_timeout)
            for streams in (1, 8):
                asyncio.run(completions.load(
                    server.port, options.model_name, streams, 1,
                    options.prompt, 16))
    return started


def _idle_share(server):
    """Of a core, that it takes while nobody asks."""
    seconds, before = 2, server.cpu_s()
    time.sleep(seconds)
    return (server.cpu_s() - before) / seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--model', required=True)
    parser.add_argument('--peer', action='append', default=[], nargs=3,
                        metavar=('NAME', 'READY', 'COMMAND'))
    parser.add_argument('--penstock', default=paired.PENSTOCK)
    parser.add_argument('--ours', default=_OURS)
    parser.add_argument('--up', default='', metavar='OPTIONS',
                        help='more options of penstock up')
    parser.add_argument('--model-name', default='m',
                        help='that requests name')
    parser.add_argument('--cores', type=int, default=2, help='of all servers')
    parser.add_argument('--streams', default='1,8',
                        type=lambda text: [int(n) for n in text.split(',')])
    parser.add_argument('--requests', type=int, default=2,
                        help='of each stream, one after the other')
    parser.add_argument('--prompt', type=int, default=200)
    parser.add_argument('--answer', type=int, default=64)
    parser.add_argument('--long-prompt', action='store_true')
    parser.add_argument('--pairs', type=int, default=5, help='rounds')
    parser.add_argument('--start-timeout', type=float, default=180)
    options = parser.parse_args()
    if not options.peer:
        parser.error('--peer: at least one')

    if options.long_prompt:
        measure, rows = _measure_long_prompt, _LONG_PROMPT_ROWS
        work = 'a prompt of 3800 beside 4 answers'
    else:
        measure = _measure_loads
        rows = [row for streams in options.streams
                for row in _load_rows(streams)]
        work = f'prompt {options.prompt}, answer {options.answer}'
    with contextlib.ExitStack() as stack:
        sides = _start(stack, options)

        def ask(server):
            with server.turn():
                figures = measure(server, options)
            print(f'{server.name}: ' + ', '.join(
                f'{row.title} {figures[row.key]:.3g}' for row in rows),
                file=sys.stderr)
            return figures

        rounds = [paired.in_turn(one, [lambda side=side: ask(side)
                                       for side in sides])
                  for one in range(options.pairs)]
        print(f'{paired.processor()}; {work}; rounds: {options.pairs}; ours '
              f'takes {100 * _idle_share(sides[0]):.1f}% of a core when idle\n')
        print_table([side.name for side in sides], rows, rounds)


if __name__ == '__main__':
    main()
