"""The official `openai` package, unmodified, against a router, a prefill and a
decode worker: what its tests share."""

import json
import unittest

import openai

import cluster
from api import Api

MODEL = cluster.MODEL.stem
CONTEXT = 8192
HELLO = [{'role': 'user', 'content': 'Say hello to the world.'}]


def recorded(name):
    with open(cluster.CASES / 'generation.jsonl', encoding='ascii') as file:
        return next(case for case in map(json.loads, file)
                    if case['name'] == name)


class OpenAiCase(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None)
        cls.api = Api(cls.cluster.grpc)
        cls.addClassCleanup(cls.api.close)
        cls.client = openai.OpenAI(
            base_url=f'http://{cls.cluster.http}/v1', api_key='none',
            max_retries=0, timeout=120)
        cls.addClassCleanup(cls.client.close)

    def chat(self, messages=None, **fields):
        fields.setdefault('temperature', 0)
        fields.setdefault('max_tokens', 12)
        return self.client.chat.completions.create(
            model=MODEL, messages=HELLO if messages is None else messages,
            **fields)

    def complete(self, prompt='Once upon a time', **fields):
        fields.setdefault('temperature', 0)
        fields.setdefault('max_tokens', 12)
        return self.client.completions.create(
            model=MODEL, prompt=prompt, **fields)

    def grpc_text(self, max_tokens=12, **prompt):
        return self.api.answer(
            sampling={'temperature': 0}, stop={'max_tokens': max_tokens},
            **prompt).text

    def refused(self, call, param, code=None, error=openai.BadRequestError):
        with self.assertRaises(error) as caught:
            result = call()
            if hasattr(result, '__next__'):
                list(result)
        body = caught.exception.body
        self.assertEqual(body['param'], param, body)
        self.assertIn(param or '', body['message'])
        if code:
            self.assertEqual(body['code'], code)
        return caught.exception

    def stream_of(self, stream):
        """Chunks of a stream, checked for the rules that all obey."""
        chunks = list(stream)
        self.assertEqual(len({chunk.id for chunk in chunks}), 1)
        self.assertEqual({chunk.model for chunk in chunks}, {MODEL})
        finishes = {}
        for chunk in chunks:
            for choice in chunk.choices:
                self.assertNotIn(choice.index, finishes, 'after its end')
                if choice.finish_reason is not None:
                    finishes[choice.index] = choice.finish_reason
        return chunks, finishes
