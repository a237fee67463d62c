"""Workers of one host take turns on its cores, and none waits for one that is
frozen or dead."""

import signal
import threading
import unittest

import grpc

from api import Api
from cluster import Cluster
from cluster import metrics
from cluster import total
from cluster import wait_until

PATIENCE_S = 60
ANSWER = [100 + i * 7 % 3000 for i in range(40)]


def prompt(first):
    """Long, and in no cache."""
    return [first + i * 11 % 5000 for i in range(3000)]


class CoreTurnsTest(unittest.TestCase):

    def setUp(self):
        self.cluster = self.enterContext(Cluster())
        self.api = self.enterContext(Api(self.cluster.grpc))
        self.api.learn()

    def start(self, ids, max_tokens):
        """Goes on without being read; ends with the test at the latest."""
        call = self.api.generate(
            ids={'ids': ids}, sampling={'temperature': 0},
            stop={'max_tokens': max_tokens, 'ignore_eos': True})

        def read():
            try:
                for _ in call:
                    pass
            except grpc.RpcError:
                pass  # cancelled
        reader = threading.Thread(target=read)
        reader.start()
        self.addCleanup(reader.join)
        self.addCleanup(call.cancel)
        return call

    def decode(self):
        """(rows of answers, seconds waited for prompts) so far."""
        values = metrics(self.cluster.servers['decode-0']['metrics'])
        return (total(values, 'penstock_worker_decode_rows_total'),
                total(values, 'penstock_worker_core_wait_seconds_total'))

    def wait_for_turns(self):
        before = self.decode()[1]
        wait_until(lambda: self.decode()[1] > before, PATIENCE_S,
                   'answers leave the cores to the prompt')

    def go_on_at_once(self):
        """Whether answers got some way without waiting."""
        rows, waited = self.decode()
        wait_until(lambda: self.decode()[0] >= rows + 50, PATIENCE_S,
                   'answers go on')
        return self.decode()[1] == waited

    def test_nobody_waits_for_the_frozen_and_the_dead(self):
        self.start(ANSWER, 8000)
        wait_until(lambda: self.decode()[0] > 0, PATIENCE_S, 'answers run')
        self.assertTrue(self.go_on_at_once(), 'waited with nobody beside')

        asked = self.start(prompt(3000), 4)
        self.wait_for_turns()
        frozen = self.cluster.pid('prefill-0')
        self.cluster.signal_server('prefill-0', signal.SIGSTOP)
        wait_until(self.go_on_at_once, PATIENCE_S,
                   'answers wait for a frozen worker no longer')
        asked.cancel()
        self.cluster.signal_server('prefill-0', signal.SIGKILL)
        wait_until(lambda: self.cluster.pid('prefill-0') not in (None, frozen),
                   PATIENCE_S, 'prefill-0 is started again')
        self.assertTrue(self.go_on_at_once(), 'waited for a dead worker')


if __name__ == '__main__':
    unittest.main()
