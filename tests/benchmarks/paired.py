"""What the comparisons in this folder share: runs of two sides in turn, ratios
of each pair, and their summary. A machine's speed drifts more than engines
differ, so only figures of one pair are ever divided."""

import collections
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PENSTOCK = ROOT / 'build/release/bin/penstock'

Summary = collections.namedtuple('Summary', 'median low high')


def summary(values):
    return Summary(statistics.median(values), min(values), max(values))


def run_json(command, timeout):
    """The JSON document that a command prints; exits with its error."""
    done = subprocess.run([str(word) for word in command],
                          stdout=subprocess.PIPE, text=True, timeout=timeout,
                          check=False)
    if done.returncode != 0:
        sys.exit(f'{command[0]} ended with status {done.returncode}')
    return json.loads(done.stdout)


def rows(document):
    """{figure: row} of what a bench of an engine prints."""
    found = {}
    for row in document['prefill']:
        found[f'prefill {row["tokens"]}'] = row
    for row in document['decode']:
        found[f'decode {row["batch"]}'] = row
    return found


def speeds(document):
    """{figure: tokens/s}."""
    return {name: row['tokens_per_s'] for name, row in rows(document).items()}


def in_turn(pair, sides):
    """Results of the sides, called in an order that changes from pair to
    pair, so that none always comes after the same other."""
    turn = pair % len(sides)
    order = list(range(turn, len(sides))) + list(range(turn))
    results = {index: sides[index]() for index in order}
    return [results[index] for index in range(len(sides))]


def add_engine_options(parser, batch):
    """Options of every comparison through `penstock bench engine`."""
    parser.add_argument('--penstock', default=PENSTOCK)
    parser.add_argument('--ours', default='', metavar='OPTIONS',
                        help='more options of penstock bench engine')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--prefill', default='512')
    parser.add_argument('--batch', default=batch)
    parser.add_argument('--depth', type=int, default=0)
    parser.add_argument('--decode', type=int, default=32, help='steps')
    parser.add_argument('--repeat', type=int, default=1,
                        help='runs of each figure in one run of a side')
    parser.add_argument('--pairs', type=int, default=5)
    parser.add_argument('--timeout', type=float, default=600,
                        help='seconds of one run')


def engine_load(options, model):
    """The words that both sides understand."""
    return ['--model', model, '--threads', options.threads, '--prefill',
            options.prefill, '--batch', options.batch, '--depth',
            options.depth, '--decode', options.decode, '--repeat',
            options.repeat]


def processor():
    """The machine by what matters to kernels."""
    flags, cores = set(), 0
    for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
        cores += line.startswith('processor')
        if line.startswith('flags'):
            flags.update(line.split(':')[1].split())
    known = ['avx2', 'fma', 'f16c', 'avx512f', 'avx512_vnni', 'avx512_bf16',
             'avx_vnni', 'amx_int8']
    return f'{cores} cores: ' + ' '.join(flag for flag in known if flag in flags)
