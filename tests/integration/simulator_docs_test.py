"""The documents' own examples of the simulator: every block of bash with
penstock-sim in docs/routing.md and docs/trace-simulation.md that needs nothing
but a clone is run as it stands."""

import os
import re
import subprocess
import unittest

import cluster

DOCUMENTS = ('docs/routing.md', 'docs/trace-simulation.md')


def examples():
    """(document, command) of each example."""
    for name in DOCUMENTS:
        text = (cluster.ROOT / name).read_text(encoding='utf-8')
        for block in re.findall(r'^```bash\n(.*?)^```', text, re.M | re.S):
            if 'penstock-sim' in block:
                yield name, block


class SimulatorDocsTest(unittest.TestCase):

    def test_every_example(self):
        path = f'{cluster.BIN}:{os.environ["PATH"]}'
        found = list(examples())
        self.assertEqual({name for name, _ in found}, set(DOCUMENTS))
        for name, command in found:
            with self.subTest(name, command=command):
                done = subprocess.run(
                    ['bash', '-e', '-c', command], cwd=cluster.ROOT,
                    env={**os.environ, 'PATH': path}, capture_output=True,
                    text=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn('100 requests' if ' trace ' in command else
                              'prefix_aware', done.stdout)


if __name__ == '__main__':
    unittest.main()
