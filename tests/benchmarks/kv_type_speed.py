#!/usr/bin/env python3
"""Compares decoding with two types of KV pages, in alternating pairs.

  kv_type_speed.py --model MODEL.gguf [--types int8,f16] [--depth 2048]

Prints the ratio of tokens/s, the first type's to the second's: medians of the
pairs, with the lowest and highest.
"""

import argparse
import functools
import shlex

import paired


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--model', required=True)
    parser.add_argument('--types', default='int8,f16')
    paired.add_engine_options(parser, batch='32')
    parser.set_defaults(depth=2048, prefill='16', decode=8)
    options = parser.parse_args()
    types = options.types.split(',')
    if len(types) != 2:
        parser.error('--types: two of them')

    sides = [functools.partial(
        paired.run_json,
        [options.penstock, 'bench', 'engine', '--json', '--kv-type', kind,
         *paired.engine_load(options, options.model),
         *shlex.split(options.ours)], options.timeout) for kind in types]
    pairs = [[paired.rows(document) for document in paired.in_turn(i, sides)]
             for i in range(options.pairs)]
    print(f'{paired.processor()}; {options.threads} threads, depth '
          f'{options.depth}, {options.pairs} pairs; {types[0]} / {types[1]}\n')
    for figure in pairs[0][0]:
        if figure.startswith('prefill'):
            continue
        speed = [[side[figure]['tokens_per_s'] for side in pair]
                 for pair in pairs]
        ratio = paired.summary([first / second for first, second in speed])
        medians = [paired.summary(values).median for values in zip(*speed)]
        print(f'{figure:10} {ratio.median:.2f} ({ratio.low:.2f} to '
              f'{ratio.high:.2f}); {medians[0]:.1f} and {medians[1]:.1f} '
              'tokens/s')


if __name__ == '__main__':
    main()
