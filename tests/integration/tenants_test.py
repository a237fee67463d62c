"""Tenants of HTTP clients: whose a request is, and what becomes of limits."""

import tempfile
import unittest

import openai
import requests

import cluster
from cluster import metrics
from cluster import total
from cluster import wait_until
from http_test import Raw
from http_test import request_text

MODEL = cluster.MODEL.stem
SMALL, LARGE = 'key-of-small', 'key-of-large'
CONFIG = f"""
version: 1
limits {{
  tenants {{ name: "small" max_running: 1 max_queued: 1 api_keys: "{SMALL}" }}
  tenants {{ name: "large" weight: 3 api_keys: "{LARGE}" }}
}}
http {{ require_api_key: %s }}
"""


class TenantsTest(unittest.TestCase):

    def start(self, require='false'):
        config = self.enterContext(
            tempfile.NamedTemporaryFile(mode='w', suffix='.textproto'))
        config.write(CONFIG % require)
        config.flush()
        # Steps of 10 ms: a request of this length runs as long as it is wanted.
        self.one = self.enterContext(cluster.Cluster(
            '--router-config', config.name, '--backend', 'timer'))

    def ask(self, key, max_tokens=4000, path='completions', **fields):
        return requests.post(
            f'http://{self.one.http}/v1/{path}', timeout=60, stream=True,
            headers={'Authorization': f'Bearer {key}'} if key else {},
            json={'model': MODEL, 'prompt': 'Count:', 'stream': True,
                  'max_tokens': max_tokens, 'ignore_eos': True, **fields})

    def queued(self):
        return total(metrics(self.one.metrics),
                     'penstock_router_queued_requests')

    def test_a_tenant_at_its_limit_is_told_when_to_come_back(self):
        self.start()
        runs = self.ask(SMALL)
        self.addCleanup(runs.close)
        # The head comes when a request is admitted; the next one waits.
        self.assertEqual(runs.status_code, 200)
        waits = Raw(self.one.http)
        self.addCleanup(waits.close)
        waits.send(request_text(
            '/v1/completions', {'model': MODEL, 'prompt': 'Count:'}, '1.1',
            f'Authorization: Bearer {SMALL}'))
        wait_until(lambda: self.queued() == 1, 30, 'it waits')
        refused = self.ask(SMALL)
        self.assertEqual(refused.status_code, 429)
        self.assertEqual(refused.json()['error']['code'], 'queue_full')
        self.assertGreaterEqual(int(refused.headers['Retry-After']), 1)
        self.assertEqual(refused.headers['x-should-retry'], 'true')
        client = openai.OpenAI(base_url=f'http://{self.one.http}/v1',
                               api_key=SMALL, max_retries=0)
        with self.assertRaises(openai.RateLimitError):
            client.completions.create(model=MODEL, prompt='Count:')
        # Others are not held up.
        for key in (LARGE, 'unknown', ''):
            answer = self.ask(key, max_tokens=2, stream=False)
            self.assertEqual(answer.status_code, 200, answer.text)
        runs.close()
        self.assertEqual(waits.head()[0], 200)

    def test_keys_may_be_required(self):
        self.start('true')
        for key in ('', 'unknown'):
            for path in ('completions', 'chat/completions'):
                answer = self.ask(key, path=path)
                self.assertEqual(answer.status_code, 401)
                self.assertEqual(answer.json()['error']['code'],
                                 'invalid_api_key')
        self.assertEqual(self.ask(LARGE, max_tokens=2).status_code, 200)
        health = requests.get(f'http://{self.one.http}/health', timeout=30)
        self.assertEqual(health.status_code, 200)


if __name__ == '__main__':
    unittest.main()
