#!/usr/bin/env python3
"""How long running answers wait for a long prompt that arrives beside them, and
how long the prompt waits for its first token, alone and beside them.

  long_prompt.py --port PORT --model NAME

For any server of the OpenAI completions API that takes token ids. Prints each
round and then medians, with the lowest and highest.
"""

import argparse
import asyncio
import statistics

import completions

# Tokens of a stream before the prompt comes, so that its usual gap is known.
_BEFORE = 40


async def measure(args):
    async def ask(tokens, answer, times=None):
        return await completions.stream(
            args.port, completions.prompt(tokens), answer, args.model, times)

    alone = await ask(args.prompt, 2)
    seen = [[] for _ in range(args.streams)]
    streams = [asyncio.create_task(ask(32, args.tokens, times))
               for times in seen]
    while min(len(times) for times in seen) < _BEFORE:
        await asyncio.sleep(0.001)
    beside = await ask(args.prompt, 2)
    streams = await asyncio.gather(*streams)
    begun, ended = beside.asked, beside.times[0]
    usual, meanwhile = [], []
    for stream in streams:
        for before, after in zip(stream.times[1:], stream.times[2:]):
            if after <= begun:
                usual.append(after - before)
            elif before < ended:
                meanwhile.append(after - before)
    return {
        'usual gap, ms': 1e3 * statistics.median(usual),
        'longest gap, ms': 1e3 * max(meanwhile),
        'gaps meanwhile': len(meanwhile),
        'first token alone, s': alone.first_token_s(),
        'first token beside, s': beside.first_token_s(),
        'beside / alone': beside.first_token_s() / alone.first_token_s()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--model', required=True)
    parser.add_argument('--prompt', type=int, default=3800)
    parser.add_argument('--streams', type=int, default=4)
    parser.add_argument('--tokens', type=int, default=1000,
                        help='of each stream: enough to outlast the prompt')
    parser.add_argument('--rounds', type=int, default=5)
    args = parser.parse_args()
    rounds = []
    for _ in range(args.rounds):
        rounds.append(asyncio.run(measure(args)))
        print(', '.join(f'{key} {value:.3g}'
                        for key, value in rounds[-1].items()), flush=True)
    for key in rounds[0]:
        values = sorted(figures[key] for figures in rounds)
        print(f'{key:22} {statistics.median(values):8.3g} '
              f'({values[0]:.3g} to {values[-1]:.3g})')


if __name__ == '__main__':
    main()
