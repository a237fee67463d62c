"""Models and chats over the `openai` package."""

import asyncio
import concurrent.futures
import unittest

import openai

from openai_case import HELLO
from openai_case import MODEL
from openai_case import OpenAiCase


class OpenAiChatTest(OpenAiCase):

    # Models.

    def test_models_list(self):
        models = self.client.models.list().data
        self.assertEqual([model.id for model in models], [MODEL])
        self.assertEqual(models[0].object, 'model')
        self.assertGreater(models[0].created, 0)

    def test_model_retrieve(self):
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)

    def test_model_unknown(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.models.retrieve('gpt-4')
        self.assertEqual(caught.exception.body['code'], 'model_not_found')

    # Chats.

    def test_chat_answer(self):
        answer = self.chat()
        self.assertEqual(answer.object, 'chat.completion')
        self.assertTrue(answer.id.startswith('chatcmpl-'))
        self.assertEqual(answer.model, MODEL)
        self.assertTrue(answer.system_fingerprint)
        choice, = answer.choices
        self.assertEqual(choice.message.role, 'assistant')
        self.assertEqual(choice.index, 0)
        self.assertEqual(choice.finish_reason, 'length')
        self.assertEqual(choice.message.content,
                         self.grpc_text(messages={'messages': HELLO}))

    def test_chat_usage(self):
        answer = self.chat(max_tokens=7)
        usage = answer.usage
        ids = self.api.call('Tokenize', messages={'messages': HELLO}).ids
        self.assertEqual(usage.prompt_tokens, len(ids))
        self.assertEqual(usage.completion_tokens, 7)
        self.assertEqual(usage.total_tokens, len(ids) + 7)

    def test_chat_cached_tokens(self):
        words = ' '.join(f'word{i}' for i in range(60))
        messages = [{'role': 'user', 'content': words}]
        self.chat(messages, max_tokens=1)
        second = self.chat(messages, max_tokens=1)
        self.assertGreater(
            second.usage.prompt_tokens_details.cached_tokens, 16)

    def test_chat_stream(self):
        chunks, finishes = self.stream_of(self.chat(stream=True))
        self.assertEqual(finishes, {0: 'length'})
        self.assertTrue(all(
            chunk.object == 'chat.completion.chunk' for chunk in chunks))
        self.assertTrue(all(chunk.usage is None for chunk in chunks))
        # The role comes with the first text, and once.
        roles = [chunk.choices[0].delta.role for chunk in chunks]
        self.assertEqual(roles, ['assistant'] + [None] * (len(chunks) - 1))
        self.assertTrue(chunks[0].choices[0].delta.content)
        text = ''.join(chunk.choices[0].delta.content or '' for chunk in chunks)
        self.assertEqual(text, self.chat().choices[0].message.content)

    def test_chat_stream_usage(self):
        chunks, _ = self.stream_of(self.chat(
            stream=True, stream_options={'include_usage': True}))
        last = chunks.pop()
        self.assertEqual(last.choices, [])
        self.assertEqual(last.usage.completion_tokens, 12)
        self.assertTrue(all(chunk.usage is None for chunk in chunks))
        self.assertTrue(all(chunk.choices for chunk in chunks))

    def test_chat_stream_usage_declined(self):
        chunks, _ = self.stream_of(self.chat(
            stream=True, stream_options={'include_usage': False}))
        self.assertTrue(all(chunk.choices for chunk in chunks))

    def test_chat_stream_helper(self):
        # It ends by itself: the helper takes a cut answer for an error.
        messages = [{'role': 'user', 'content': 'Say yes.'}]
        with self.client.chat.completions.stream(
                model=MODEL, messages=messages, temperature=0) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        self.assertEqual(
            final.choices[0].message.content,
            self.chat(messages, max_tokens=None).choices[0].message.content)

    def test_chat_system_message(self):
        messages = [{'role': 'system', 'content': 'You speak like a pirate.'},
                    *HELLO]
        self.assertEqual(
            self.chat(messages).choices[0].message.content,
            self.grpc_text(messages={'messages': messages}))

    def test_chat_content_parts(self):
        parts = [{'role': 'user', 'content': [
            {'type': 'text', 'text': HELLO[0]['content']}]}]
        self.assertEqual(self.chat(parts).choices[0].message.content,
                         self.chat().choices[0].message.content)

    def test_chat_several_turns(self):
        messages = [*HELLO, {'role': 'assistant', 'content': 'Hello, world!'},
                    {'role': 'user', 'content': 'And again.'}]
        self.assertEqual(
            self.chat(messages).choices[0].message.content,
            self.grpc_text(messages={'messages': messages}))

    def test_chat_answer_goes_back_as_it_came(self):
        message = self.chat().choices[0].message
        answer = self.chat([*HELLO, message, *HELLO])
        self.assertTrue(answer.choices[0].message.content)

    def test_chat_null_content_refused(self):
        self.refused(lambda: self.chat([{'role': 'user', 'content': None}]),
                     'messages[0].content')

    def test_chat_no_messages_refused(self):
        self.refused(lambda: self.chat([]), 'messages', 'prompt_empty')

    def test_chat_image_refused(self):
        content = [{'type': 'image_url', 'image_url': {'url': 'http://x/y'}}]
        self.refused(lambda: self.chat([{'role': 'user', 'content': content}]),
                     'messages[0].content[0].type', 'unsupported_parameter')

    def test_chat_max_completion_tokens(self):
        answer = self.chat(max_tokens=None, max_completion_tokens=3)
        self.assertEqual(answer.usage.completion_tokens, 3)

    def test_chat_without_max_tokens_ends_by_itself(self):
        answer = self.chat([{'role': 'user', 'content': 'Say yes.'}],
                           max_tokens=None)
        self.assertEqual(answer.choices[0].finish_reason, 'stop')
        self.assertGreater(answer.usage.completion_tokens, 0)

    def test_chat_logprobs(self):
        answer = self.chat(logprobs=True, top_logprobs=3)
        content = answer.choices[0].logprobs.content
        self.assertEqual(len(content), 12)
        text = b''.join(bytes(token.bytes) for token in content).decode()
        self.assertEqual(text, answer.choices[0].message.content)
        for token in content:
            self.assertEqual(len(token.top_logprobs), 3)
            # Greedy: the chosen token is the likeliest.
            self.assertEqual(token.top_logprobs[0].token, token.token)
            self.assertEqual(token.top_logprobs[0].logprob, token.logprob)
            self.assertLessEqual(token.logprob, 0)

    def test_chat_logprobs_without_top(self):
        answer = self.chat(logprobs=True)
        for token in answer.choices[0].logprobs.content:
            self.assertEqual(token.top_logprobs, [])

    def test_chat_logprobs_stream(self):
        whole = self.chat(logprobs=True, top_logprobs=1).choices[0].logprobs
        chunks, _ = self.stream_of(self.chat(
            logprobs=True, top_logprobs=1, stream=True))
        streamed = [token for chunk in chunks if chunk.choices[0].logprobs
                    for token in chunk.choices[0].logprobs.content]
        self.assertEqual(streamed, whole.content)

    def test_chat_no_logprobs_unless_asked(self):
        self.assertIsNone(self.chat().choices[0].logprobs)

    def test_chat_top_logprobs_alone_refused(self):
        self.refused(lambda: self.chat(top_logprobs=2), 'top_logprobs')

    def test_chat_top_logprobs_too_many_refused(self):
        self.refused(lambda: self.chat(logprobs=True, top_logprobs=21),
                     'top_logprobs')

    # What is refused for now, or for good.

    def test_tools_refused(self):
        tools = [{'type': 'function', 'function': {'name': 'f'}}]
        self.refused(lambda: self.chat(tools=tools), 'tools',
                     'unsupported_parameter')

    def test_tool_choice_none_accepted(self):
        self.assertTrue(
            self.chat(extra_body={'tool_choice': 'none', 'tools': []})
            .choices[0].message.content)

    def test_response_format(self):
        self.assertTrue(self.chat(response_format={'type': 'text'}).choices)
        self.refused(
            lambda: self.chat(response_format={'type': 'json_object'}),
            'response_format', 'unsupported_parameter')

    def test_audio_refused(self):
        self.refused(
            lambda: self.chat(audio={'voice': 'alloy', 'format': 'wav'}),
            'audio', 'unsupported_parameter')

    def test_stream_options_without_stream_refused(self):
        self.refused(lambda: self.chat(
            extra_body={'stream_options': {'include_usage': True}}),
            'stream_options')

    def test_unknown_model_refused(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.completions.create(model='gpt-4', prompt='x')
        self.assertEqual(caught.exception.body['code'], 'model_not_found')

    def test_other_calls_are_not_found(self):
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model=MODEL, input='x')

    # The rest.

    def test_request_id(self):
        answer = self.complete(extra_headers={'x-request-id': 'mine-1'})
        self.assertEqual(answer._request_id, 'mine-1')
        self.assertEqual(answer.id, 'cmpl-mine-1')
        self.assertTrue(self.complete()._request_id)

    def test_errors_carry_the_request_id(self):
        error = self.refused(lambda: self.complete(temperature=-1),
                             'temperature')
        self.assertTrue(error.request_id)

    def test_token_ids_back(self):
        answer = self.complete(extra_body={'return_token_ids': True})
        ids = self.api.answer(
            text='Once upon a time', sampling={'temperature': 0},
            stop={'max_tokens': 12}).ids
        self.assertEqual(answer.choices[0].token_ids, ids)

    def test_template_options(self):
        messages = [*HELLO, {'role': 'assistant', 'content': 'Hello, wor'}]
        answer = self.chat(messages, extra_body={
            'continue_final_message': True, 'add_generation_prompt': False})
        ids = self.client.post('../tokenize', cast_to=object, body={
            'messages': messages, 'continue_final_message': True,
            'add_generation_prompt': False})
        self.assertEqual(answer.usage.prompt_tokens, ids['count'])
        self.assertEqual(
            answer.choices[0].message.content,
            self.grpc_text(ids={'ids': ids['tokens']}))

    def test_many_at_once(self):
        prompts = [f'Number {i} is' for i in range(16)]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            together = list(pool.map(
                lambda prompt: self.complete(prompt).choices[0].text, prompts))
        for prompt, text in list(zip(prompts, together))[:4]:
            self.assertEqual(self.complete(prompt).choices[0].text, text)

    def test_async_client(self):
        async def run():
            async with openai.AsyncOpenAI(
                    base_url=f'http://{self.cluster.http}/v1', api_key='none',
                    max_retries=0) as client:
                stream = await client.chat.completions.create(
                    model=MODEL, messages=HELLO, temperature=0, max_tokens=12,
                    stream=True)
                return ''.join([chunk.choices[0].delta.content or ''
                                async for chunk in stream])

        self.assertEqual(asyncio.run(run()),
                         self.chat().choices[0].message.content)


if __name__ == '__main__':
    unittest.main()
