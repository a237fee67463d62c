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

# Tokens of a stream before the prompt comes, and those of them that its usual
# gap is the mean of: some servers send several at once.
_BEFORE = 40
_USUAL = 20

# Figures of a round.
USUAL_GAP = 'usual gap, ms'
LONGEST_GAP = 'longest gap, ms'
ALONE = 'first token alone, s'
BESIDE = 'first token beside, s'
RATIO = 'beside / alone'


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
    begun, ended = beside.asked, beside.times[0]
    # Until each has a token after the prompt's, which ends its last gap.
    while not all(task.done() or times[-1] > ended
                  for task, times in zip(streams, seen)):
        await asyncio.sleep(0.001)
    for task in streams:
        task.cancel()
    await asyncio.gather(*streams, return_exceptions=True)
    usual, meanwhile = [], []
    for times in seen:
        known = [time for time in times if time <= begun][-_USUAL - 1:]
        usual.append((known[-1] - known[0]) / _USUAL)
        meanwhile += [after - before for before, after in zip(times, times[1:])
                      if after > begun and before < ended]
    return {
        USUAL_GAP: 1e3 * statistics.median(usual),
        LONGEST_GAP: 1e3 * max(meanwhile),
        'gaps meanwhile': len(meanwhile),
        ALONE: alone.first_token_s(),
        BESIDE: beside.first_token_s(),
        RATIO: beside.first_token_s() / alone.first_token_s()}


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
