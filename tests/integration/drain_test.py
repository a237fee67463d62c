"""SIGTERM lets running requests end, refuses new ones, and leaves nothing."""

import signal
import unittest

import grpc
import requests
from grpc_health.v1 import health_pb2
from grpc_health.v1 import health_pb2_grpc

import cluster
from api import Answer
from api import Api
from cluster import wait_until

SERVING = health_pb2.HealthCheckResponse.SERVING


def exists(pid):
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as file:
            return file.read().rsplit(')', 1)[1].split()[0] != 'Z'
    except FileNotFoundError:
        return False


class DrainTest(unittest.TestCase):

    def test_running_request_ends_and_processes_go(self):
        with cluster.Cluster() as one, Api(one.grpc) as api:
            pids = [server['pid'] for server in one.servers.values()]
            call = api.generate(
                text='Count:', sampling={'temperature': 0},
                stop={'max_tokens': 200, 'ignore_eos': True})
            answer = Answer()
            answer.add(next(call))
            one.signal(signal.SIGTERM)
            for response in call:
                answer.add(response)
            answer.check_finished()
            self.assertEqual(len(answer.ids), 200)
            self.assertEqual(one.wait(), 0)
            self.assertFalse([pid for pid in pids if exists(pid)])

    def test_draining_router_refuses(self):
        with cluster.Cluster() as one, Api(one.grpc) as api:
            call = api.generate(
                text='Count:', stop={'max_tokens': 4000, 'ignore_eos': True})
            next(call)
            health = health_pb2_grpc.HealthStub(api.channel)
            states = health.Watch(
                health_pb2.HealthCheckRequest(service=''), timeout=30)
            self.assertEqual(next(states).status, SERVING)
            one.signal_server('router', signal.SIGTERM)
            self.assertNotEqual(next(states).status, SERVING)
            failure = api.failure(text='Hello')
            self.assertEqual((failure.code, failure.reason),
                             (grpc.StatusCode.UNAVAILABLE, 'DRAINING'))
            self.assertTrue(failure.retryable)
            call.cancel()
            states.cancel()

    def test_killed_worker_fails_its_requests_only(self):
        with cluster.Cluster('--decode', '2') as one, Api(one.grpc) as api:
            one.signal_server('decode-0', signal.SIGKILL)
            wait_until(lambda: api.call('GetModelInfo').decode_workers == 1,
                       30, 'the router notices')
            answer = api.answer(
                ids={'ids': [100 + i for i in range(100)]},
                stop={'max_tokens': 5, 'ignore_eos': True})
            self.assertEqual(len(answer.ids), 5)
            self.assertEqual(answer.placement.decode, 'decode-1')

    def test_killed_worker_comes_back_at_its_address(self):
        with cluster.Cluster() as one, Api(one.grpc) as api:
            first = one.servers['decode-0']
            one.signal_server('decode-0', signal.SIGKILL)
            wait_until(lambda: api.call('GetModelInfo').decode_workers == 0,
                       30, 'the router notices')
            wait_until(lambda: api.call('GetModelInfo').decode_workers == 1,
                       30, 'it is started again')
            self.assertEqual(len(api.answer(
                text='Hello', stop={'max_tokens': 5, 'ignore_eos': True}).ids),
                5)
            cluster.metrics(first['metrics'])
            self.assertFalse(exists(first['pid']))

    def test_killed_router_comes_back_at_its_addresses(self):
        with cluster.Cluster() as one, Api(one.grpc) as api:
            api.learn()
            call = api.generate(
                text='Count:', stop={'max_tokens': 4000, 'ignore_eos': True})
            next(call)
            one.signal_server('router', signal.SIGKILL)
            with self.assertRaises(grpc.RpcError) as caught:
                list(call)
            self.assertEqual(caught.exception.code(),
                             grpc.StatusCode.UNAVAILABLE)

            def serves():
                try:
                    return requests.get(f'http://{one.http}/health',
                                        timeout=5).status_code == 200
                except requests.ConnectionError:
                    return False
            wait_until(serves, 30, 'it is started again')
            self.assertTrue(one.running())
            with Api(one.grpc) as again:
                self.assertEqual(len(again.answer(
                    text='Hello',
                    stop={'max_tokens': 5, 'ignore_eos': True}).ids), 5)
            cluster.metrics(one.metrics)
            self.assertFalse(exists(one.servers['router']['pid']))

    def test_two_routers_serve_and_one_is_killed(self):
        # Neither has a page of metrics.
        with cluster.Cluster('--routers', '2', '--metrics', '') as one:
            fields = {'text': 'Hello',
                      'stop': {'max_tokens': 5, 'ignore_eos': True}}
            self.assertEqual(one.grpc, one.servers['router-0']['grpc'])
            with Api(one.grpc) as first:
                right = first.answer(request_id='the same', **fields)
            one.signal_server('router-0', signal.SIGKILL)
            with Api(one.servers['router-1']['grpc']) as second:
                answer = second.answer(request_id='the same', **fields)
            self.assertEqual(answer.ids, right.ids)
            health = requests.get(
                f'http://{one.servers["router-1"]["http"]}/health', timeout=30)
            self.assertEqual(health.status_code, 200)

    def test_killed_parent_takes_its_children_along(self):
        with cluster.Cluster() as one:
            pids = [server['pid'] for server in one.servers.values()]
            one.kill()
        wait_until(lambda: not any(exists(pid) for pid in pids), 30,
                   'the servers end with `penstock up`')


if __name__ == '__main__':
    unittest.main()
