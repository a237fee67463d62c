"""The documents' own examples: every block of bash with curl in README.md and
docs/http.md is run as it stands, but for the port."""

import json
import subprocess
import unittest

import cluster
from documents import examples

DOCUMENTS = ('README.md', 'docs/http.md')
PORT = 'http://127.0.0.1:8080/'


class CurlTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None)

    def run_example(self, command):
        self.assertIn(PORT, command)
        command = command.replace(PORT, f'http://{self.cluster.http}/')
        # Beside what the reader types: fail on errors, no progress bar.
        command = command.replace('curl ', 'curl --silent --fail-with-body ')
        done = subprocess.run(['bash', '-c', command], capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def check_answer(self, answer):
        if answer.startswith('data: '):
            events = answer.strip().split('\n\n')
            self.assertEqual(events.pop(), 'data: [DONE]')
            for event in events:
                self.assertIn('choices',
                              json.loads(event.removeprefix('data: ')))
        elif answer.startswith('#'):
            self.assertIn('penstock_build_info', answer)
        else:
            self.assertNotIn('error', json.loads(answer))

    def test_every_example(self):
        found = list(examples(DOCUMENTS, 'curl'))
        self.assertEqual({name for name, _ in found}, set(DOCUMENTS))
        for name, command in found:
            with self.subTest(name, command=command):
                self.check_answer(self.run_example(command))

    def test_what_up_prints(self):
        up = cluster.penstock('up', '--help')
        self.assertIn('--http', up.stdout)


if __name__ == '__main__':
    unittest.main()
