"""Compares Penstock with jinja2 on fresh random templates.

    differential.py build/release/bin/render_cases [COUNT [SEED]]

Exits 1 when an outcome differs: another text, or a text where the other has an
error. What Penstock says it does not know (UNIMPLEMENTED) is counted, and may
be 2% of all at most. Needs jinja2.
"""

import collections
import json
import subprocess
import sys
import warnings

from environment import environment, outcome
from random_templates import case

MOST_SHOWN = 12
MOST_UNKNOWN = 0.02


def compared(expected, got):
    """`text`, `error`, `unknown` or `differs`."""
    if got.get('error') == 'UNIMPLEMENTED':
        return 'unknown'
    if 'text' in expected:
        return 'text' if got.get('text') == expected['text'] else 'differs'
    return 'error' if got.get('error') == 'INVALID_ARGUMENT' else 'differs'


def main():
    warnings.simplefilter('ignore')
    binary = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rows = [case(seed * 1000003 + i) for i in range(count)]
    lines = ''.join(json.dumps(row) + '\n' for row in rows)
    ran = subprocess.run([binary], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in ran.stdout.split('\n') if line]
    assert len(answers) == count, 'an answer is missing'
    made = environment()
    outcomes = collections.Counter()
    unknown = collections.Counter()
    shown = 0
    for row, got in zip(rows, answers):
        expected = outcome(made, row['template'], row['variables'])
        kind = compared(expected, got)
        outcomes[kind] += 1
        if kind == 'unknown':
            unknown[got['message'].split(': ', 1)[1]] += 1
        if kind == 'differs' and shown < MOST_SHOWN:
            shown += 1
            print(json.dumps({**row, 'jinja2': expected, 'penstock': got},
                             ensure_ascii=False, indent=1))
    for message, times in unknown.most_common(MOST_SHOWN):
        print(f'{times:6} {message}')
    print(f'{count} templates of seed {seed}:', dict(outcomes))
    if outcomes['differs'] or outcomes['unknown'] > MOST_UNKNOWN * count:
        sys.exit(1)


if __name__ == '__main__':
    main()
