#!/usr/bin/env python3
"""Compares `penstock bench engine` with another engine, in alternating pairs.

  engine_vs_peer.py --peer 'PYTHON BENCH.py' --model MODEL.gguf [--model ...]

A peer is a command that takes --model, --threads, --prefill, --batch, --depth,
--decode and --repeat and prints the JSON fields of `penstock bench engine`.
Give several, such as builds of one engine, and each figure is held against the
better one. Prints, for each model, medians of the ratios with the lowest and
highest, and whether they reach the floors that the project set itself.
"""

import argparse
import functools
import json
import pathlib
import shlex
import sys

import paired

# Least ratio by weight type; decode at batch 1 may instead read at 80% of what
# the machine can.
_FLOORS = {
    'Q4_1': {'prefill': 5, 'decode 1': 1.9, 'decode': 3.8},
    'Q8_0': {'prefill': 3, 'decode 1': 1.2, 'decode': 3},
    'Q4_0': {'prefill': 2.5, 'decode 1': 1.6, 'decode': 2.6},
    'BF16': {'prefill': 2, 'decode 1': 1.2, 'decode': 2},
}
_ENOUGH_OF_READS = 0.8


def weight_type(model):
    """The type that a file's name ends with: Q4_1 of name.Q4_1.gguf."""
    return pathlib.Path(model).stem.split('.')[-1]


def floor_of(model, figure):
    floors = _FLOORS.get(weight_type(model), {})
    if figure in floors:
        return floors[figure]
    phase, size = figure.split()
    if phase == 'decode' and not 8 <= int(size) <= 32:
        return None
    return floors.get(phase)


def measure(options, model):
    """[pair] -> (rows of ours, [speeds of each peer])."""
    load = paired.engine_load(options, model)
    sides = [functools.partial(
        paired.run_json,
        [options.penstock, 'bench', 'engine', '--json', *load,
         *shlex.split(options.ours)], options.timeout)]
    sides += [functools.partial(paired.run_json, [*shlex.split(peer), *load],
                                options.timeout) for peer in options.peer]
    pairs = []
    for pair in range(options.pairs):
        ours, *peers = paired.in_turn(pair, sides)
        pairs.append((paired.rows(ours), [paired.speeds(p) for p in peers]))
        print(f'{weight_type(model)} pair {pair + 1}: ours '
              f'{paired.speeds(ours)}, peer {pairs[-1][1]}', file=sys.stderr)
    return pairs


def compare(model, pairs):
    """One dictionary a figure that all sides have."""
    found = []
    for figure in pairs[0][0]:
        if any(figure not in peer for peer in pairs[0][1]):
            continue
        ours = [rows[figure]['tokens_per_s'] for rows, _ in pairs]
        peers = [max(peer[figure] for peer in peers) for _, peers in pairs]
        ratio = paired.summary([a / b for a, b in zip(ours, peers)])
        shares = [rows[figure].get('share_of_limit', 0) for rows, _ in pairs]
        reads = [rows[figure].get('share_of_read_limit', 0)
                 for rows, _ in pairs]
        floor = floor_of(model, figure)
        met = floor is None or ratio.median >= floor or (
            figure == 'decode 1' and
            paired.summary(reads).median >= _ENOUGH_OF_READS)
        found.append({'model': weight_type(model), 'figure': figure,
                      'ratio': ratio._asdict(), 'floor': floor, 'met': met,
                      'ours': paired.summary(ours).median,
                      'peer': paired.summary(peers).median,
                      'share_of_limit': paired.summary(shares).median})
    return found


def print_head():
    print(f'{"":6} {"":12} {"ratio":>6} {"lowest":>7} {"highest":>8}'
          f' {"floor":>6} {"":4} {"ours":>9} {"peer":>9} {"of limit":>9}')


def print_rows(found):
    for row in found:
        ratio, floor = row['ratio'], row['floor']
        verdict = '' if floor is None else 'met' if row['met'] else 'not'
        print(f'{row["model"]:6} {row["figure"]:12} {ratio["median"]:6.2f}'
              f' {ratio["low"]:7.2f} {ratio["high"]:8.2f}'
              f' {floor or "":>6} {verdict:4} {row["ours"]:9.1f}'
              f' {row["peer"]:9.1f} {row["share_of_limit"]:9.0%}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--peer', action='append', required=True,
                        help="the peer's command in one word; repeated: the "
                        'better of them counts')
    parser.add_argument('--model', action='append', required=True,
                        help='NAME.TYPE.gguf or TYPE.gguf; repeated')
    paired.add_engine_options(parser, batch='1,8,32')
    parser.add_argument('--json', action='store_true')
    options = parser.parse_args()

    if not options.json:
        print(f'{paired.processor()}; {options.threads} threads, tokens/s, '
              f'{options.pairs} pairs of each\n')
        print_head()
    found = []
    for model in options.model:
        found += compare(model, measure(options, model))
        if not options.json:
            print_rows(found)
            found = []
    if options.json:
        print(json.dumps(found))


if __name__ == '__main__':
    main()
