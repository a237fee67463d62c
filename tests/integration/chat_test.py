"""`penstock chat` at a pseudo-terminal: keys, interrupt, commands, history."""

import fcntl
import json
import os
import pathlib
import pty
import select
import subprocess
import tempfile
import termios
import time
import unittest

import cluster

LEFT = '\x1b[D'
UP = '\x1b[A'
CTRL_A = '\x01'
CTRL_C = '\x03'
CTRL_D = '\x04'
CTRL_K = '\x0b'
BACKSPACE = '\x7f'
PROMPT = '> '
WAIT_S = 60


class Chat:
    """The real command with a terminal of its own."""

    def __init__(self, address, folder, *flags):
        self.folder = pathlib.Path(folder)
        environment = {**os.environ, 'XDG_STATE_HOME': str(folder),
                       'TERM': 'dumb', 'LC_ALL': 'C.UTF-8'}
        self._master, slave = pty.openpty()
        self._run = subprocess.Popen(
            [str(cluster.BIN / 'penstock'), 'chat', '--server', address,
             '--temperature', '0', *map(str, flags)],
            stdin=slave, stdout=slave, stderr=slave, env=environment,
            cwd=folder, start_new_session=True,
            preexec_fn=self._take_terminal)
        os.close(slave)
        self.shown = ''

    @staticmethod
    def _take_terminal():
        # Makes the terminal the session's own, so that Ctrl-C is a signal.
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def type(self, keys):
        os.write(self._master, keys.encode())

    def until(self, text, seconds=WAIT_S):
        """What is shown up to and with `text`, which is then forgotten."""
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._master], [], [], max(left, 0))
            if not ready:
                raise AssertionError(f'no {text!r} in {self.shown!r}')
            try:
                read = os.read(self._master, 4096)
            except OSError:  # the other side is gone
                read = b''
            if not read:
                raise AssertionError(f'ended without {text!r}: {self.shown!r}')
            self.shown += read.decode(errors='replace')
        end = self.shown.index(text) + len(text)
        before, self.shown = self.shown[:end], self.shown[end:]
        return before

    def line(self, text):
        """Types a line; returns what is shown up to the next prompt."""
        self.until(PROMPT)
        self.type(text + '\r')
        return self.until('\n')

    def saved(self, name='saved.json'):
        self.line(f'/save -f {name}')
        self.line('')  # the prompt is back, so the file is there
        document = json.loads((self.folder / name).read_text())
        return [(message['role'], message['content'])
                for message in document['messages']]

    def wait(self):
        # Reads on: the command must not wait for somebody to do so.
        try:
            while os.read(self._master, 4096):
                pass
        except OSError:
            pass
        return self._run.wait(WAIT_S)

    def close(self):
        if self._run.poll() is None:
            self._run.kill()
            self._run.wait(WAIT_S)
        os.close(self._master)


class ChatTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.Cluster()
        cls.addClassCleanup(cls.cluster.stop)

    def chat(self, *flags, folder=None):
        if folder is None:
            made = tempfile.TemporaryDirectory()
            self.addCleanup(made.cleanup)
            folder = made.name
        chat = Chat(self.cluster.grpc, folder, *flags)
        self.addCleanup(chat.close)
        return chat

    def in_flight(self):
        return cluster.total(cluster.metrics(self.cluster.metrics),
                             'penstock_router_inflight_requests')

    def test_keys_edit_the_line(self):
        chat = self.chat('--max-tokens', 4)
        chat.line('Helo' + LEFT + 'l' + CTRL_A + 'é ' + 'x' + BACKSPACE)
        messages = chat.saved()
        self.assertEqual(messages[0], ('user', 'é Hello'))
        self.assertEqual(messages[1][0], 'assistant')
        self.assertNotEqual(messages[1][1], '')
        chat.line('never mind' + CTRL_A + CTRL_K + '/clear')
        self.assertEqual(chat.saved(), [])

    def test_history_is_there_again_the_next_time(self):
        chat = self.chat('--max-tokens', 1)
        chat.line('the first')
        chat.until(PROMPT)
        chat.type(CTRL_D)
        self.assertEqual(chat.wait(), 0)
        file = chat.folder / 'penstock/chat_history'
        self.assertEqual(file.read_text(), 'the first\n')
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        again = self.chat('--max-tokens', 1, folder=chat.folder)
        again.line(UP + ' again')
        self.assertEqual(again.saved()[0], ('user', 'the first again'))

    def test_interrupt_stops_the_answer_and_keeps_the_session(self):
        chat = self.chat('--max-tokens', 1500)
        chat.line('/set ignore_eos true')
        chat.line('Count from one to a thousand.')
        chat.until(' ')  # of the answer
        self.assertEqual(self.in_flight(), 1)
        chat.type(CTRL_C)
        chat.until(PROMPT)
        chat.type('\r')
        messages = chat.saved()
        self.assertEqual([role for role, _ in messages], ['user', 'assistant'])
        cluster.wait_until(lambda: self.in_flight() == 0, WAIT_S,
                           'the call is cancelled')
        # At the prompt it takes the line away.
        chat.until(PROMPT)
        chat.type('not this' + CTRL_C)
        chat.until('(Ctrl-D leaves)')
        chat.line('/set max_tokens 3')
        chat.line('And now?')
        self.assertEqual(chat.saved()[2], ('user', 'And now?'))

    def test_settings_and_files(self):
        chat = self.chat('--max-tokens', 2, '--system', 'Be brief.')
        chat.line('/set topp 1')
        self.assertIn('top_p', chat.until('\n'))
        chat.line('/set top_p 7')
        self.assertIn('top_p is 7', chat.until('\n'))
        chat.line('/set top_k 5')
        chat.line('/set')
        shown = chat.until('min_tokens')
        self.assertIn('system = Be brief.', shown)
        self.assertIn('top_k = 5', shown)
        chat.line('/save a.json')
        chat.line('/save a.json')
        self.assertIn('is there already', chat.until('\n'))
        chat.line('/nothing')
        self.assertIn('/help', chat.until('\n'))
        self.assertEqual(chat.saved('a.json'), [('system', 'Be brief.')])
        chat.line('/quit')
        self.assertEqual(chat.wait(), 0)

    def test_lines_of_a_pipe_are_read_without_a_prompt(self):
        with tempfile.TemporaryDirectory() as folder:
            done = cluster.penstock(
                'chat', '--server', self.cluster.grpc, '--temperature', 0,
                '--max-tokens', 3, stdin=f'Hi\n/save {folder}/a.json\n')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn(PROMPT, done.stdout)
            document = json.loads(pathlib.Path(folder, 'a.json').read_text())
        roles = [message['role'] for message in document['messages']]
        self.assertEqual(roles, ['user', 'assistant'])
        self.assertEqual(done.stdout.strip(),
                         document['messages'][1]['content'].strip())


if __name__ == '__main__':
    unittest.main()
