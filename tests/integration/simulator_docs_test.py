"""The documents' own examples of the simulator: every block of bash with
penstock-sim in docs/routing.md and docs/trace-simulation.md that needs nothing
but a clone is run as it stands."""

import os
import subprocess
import unittest

import cluster
from documents import examples

DOCUMENTS = ('docs/routing.md', 'docs/trace-simulation.md')


class SimulatorDocsTest(unittest.TestCase):

    def test_every_example(self):
        path = f'{cluster.BIN}:{os.environ["PATH"]}'
        found = list(examples(DOCUMENTS, 'penstock-sim'))
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
