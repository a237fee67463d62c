#!/usr/bin/env python3
"""Compares `penstock bench engine` with a peer, in alternating pairs, and
prints the median, lowest and highest ratio of each figure.

  engine_vs_peer.py --peer PYTHON --peer BENCH.py --model MODEL.gguf
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

_ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def figures(command, timeout):
    """{figure: tokens/s} that one run of a benchmark prints."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        sys.exit(f'{command[0]} ended with status {done.returncode}')
    document = json.loads(done.stdout)
    found = {}
    for entry in document['prefill']:
        found[f'prefill {entry["tokens"]}'] = entry['tokens_per_s']
    for entry in document['decode']:
        found[f'decode batch {entry["batch"]}'] = entry['tokens_per_s']
    return found


def ratios(ours, peers):
    """{figure: [ours / peer of each pair]}, for figures that both have."""
    common = [name for name in ours[0] if name in peers[0]]
    return {
        name: [a[name] / b[name] for a, b in zip(ours, peers)]
        for name in common
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--peer', action='append', required=True,
                        help="one word of the peer's command; repeated")
    parser.add_argument('--penstock', default=_ROOT / 'build/release/bin/penstock')
    parser.add_argument('--model', required=True)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--prefill', default='512')
    parser.add_argument('--decode', type=int, default=48)
    parser.add_argument('--batch', default='1')
    parser.add_argument('--pairs', type=int, default=5)
    parser.add_argument('--timeout', type=float, default=600,
                        help='seconds of one run')
    parser.add_argument('--json', action='store_true')
    arguments = parser.parse_args()

    load = ['--model', arguments.model, '--threads', str(arguments.threads),
            '--prefill', arguments.prefill, '--decode', str(arguments.decode),
            '--batch', arguments.batch]
    ours, peers = [], []
    for pair in range(arguments.pairs):
        ours.append(figures(
            [str(arguments.penstock), 'bench', 'engine', '--json', *load],
            arguments.timeout))
        peers.append(figures([*arguments.peer, *load], arguments.timeout))
        print(f'pair {pair + 1}: ours {ours[-1]}, peer {peers[-1]}',
              file=sys.stderr)

    result = ratios(ours, peers)
    if arguments.json:
        print(json.dumps({'ours': ours, 'peer': peers, 'ratios': result}))
        return
    print(f'{"ratio to the peer":24} {"median":>8} {"lowest":>8} {"highest":>8}'
          f' {"ours":>10} {"peer":>10}')
    for name, values in result.items():
        our_speed = statistics.median(run[name] for run in ours)
        peer_speed = statistics.median(run[name] for run in peers)
        print(f'{name:24} {statistics.median(values):8.2f} {min(values):8.2f}'
              f' {max(values):8.2f} {our_speed:10.1f} {peer_speed:10.1f}')


if __name__ == '__main__':
    main()
