"""Completions over the `openai` package: what is drawn, where answers end, and
how many there are. What they should be is told by recorded generations and by
the same requests over gRPC."""

import unittest

from openai_case import CONTEXT
from openai_case import OpenAiCase
from openai_case import recorded


class OpenAiCompletionTest(OpenAiCase):

    # Completions.

    def test_completion_recorded(self):
        found = recorded('emoji')
        answer = self.complete(found['prompt'], max_tokens=1)
        self.assertEqual(answer.object, 'text_completion')
        self.assertEqual(answer.usage.prompt_tokens, found['n_prompt'])

    def test_completion_text(self):
        self.assertEqual(self.complete().choices[0].text,
                         self.grpc_text(text='Once upon a time'))

    def test_completion_default_length(self):
        answer = self.complete(max_tokens=None)
        self.assertEqual(answer.usage.completion_tokens, 16)

    def test_completion_token_ids(self):
        ids = list(self.api.call('Tokenize', text='Once upon a time').ids)
        self.assertEqual(self.complete(ids).choices[0].text,
                         self.complete().choices[0].text)

    def test_completion_several_prompts(self):
        prompts = ['Once upon a time', 'The sky', 'def main():']
        answer = self.complete(prompts)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2])
        for prompt, choice in zip(prompts, answer.choices):
            self.assertEqual(choice.text, self.complete(prompt).choices[0].text)
        self.assertEqual(answer.usage.completion_tokens, 36)

    def test_completion_several_prompts_of_ids(self):
        ids = [list(self.api.call('Tokenize', text=text).ids)
               for text in ('Once upon a time', 'The sky')]
        answer = self.complete(ids)
        self.assertEqual(
            [choice.text for choice in answer.choices],
            [self.complete(one).choices[0].text for one in ids])

    def test_completion_stream_of_several(self):
        prompts = ['Once upon a time', 'The sky']
        chunks, finishes = self.stream_of(self.complete(prompts, stream=True))
        self.assertEqual(finishes, {0: 'length', 1: 'length'})
        for index, prompt in enumerate(prompts):
            text = ''.join(choice.text for chunk in chunks
                           for choice in chunk.choices if choice.index == index)
            self.assertEqual(text, self.complete(prompt).choices[0].text)

    def test_completion_echo(self):
        plain = self.complete().choices[0].text
        self.assertEqual(self.complete(echo=True).choices[0].text,
                         'Once upon a time' + plain)
        chunks, _ = self.stream_of(self.complete(echo=True, stream=True))
        self.assertEqual(
            ''.join(chunk.choices[0].text for chunk in chunks),
            'Once upon a time' + plain)

    def test_completion_logprobs(self):
        answer = self.complete(logprobs=2)
        logprobs = answer.choices[0].logprobs
        self.assertEqual(''.join(logprobs.tokens), answer.choices[0].text)
        offset = 0
        for token, at, logprob, top in zip(
                logprobs.tokens, logprobs.text_offset, logprobs.token_logprobs,
                logprobs.top_logprobs, strict=True):
            self.assertEqual(at, offset)
            offset += len(token)
            self.assertEqual(top[token], logprob)
            self.assertEqual(max(top.values()), logprob)
            self.assertEqual(len(top), 2)

    def test_completion_logprobs_stream(self):
        whole = self.complete(logprobs=1).choices[0].logprobs
        chunks, _ = self.stream_of(self.complete(logprobs=1, stream=True))
        parts = [chunk.choices[0].logprobs for chunk in chunks
                 if chunk.choices[0].logprobs]
        for name in ('tokens', 'token_logprobs', 'text_offset'):
            self.assertEqual(
                [value for part in parts for value in getattr(part, name)],
                getattr(whole, name))

    def test_completion_empty_prompt_refused(self):
        self.refused(lambda: self.complete(''), 'prompt', 'prompt_empty')

    def test_completion_suffix_refused(self):
        self.refused(lambda: self.complete(suffix='the end'), 'suffix',
                     'unsupported_parameter')

    def test_completion_bad_token_refused(self):
        self.refused(lambda: self.complete([1, 99999999]), 'prompt[1]')

    def test_completion_too_long_refused(self):
        error = self.refused(lambda: self.complete([5] * (CONTEXT + 1)),
                             'prompt', 'context_length_exceeded')
        self.assertIn(str(CONTEXT), error.body['message'])

    # Ends of answers.

    def test_stop_string(self):
        whole = self.complete(max_tokens=24).choices[0].text
        for stop in (whole[8:12], [whole[8:12], 'never said']):
            answer = self.complete(max_tokens=24, stop=stop)
            self.assertEqual(answer.choices[0].text,
                             whole[:whole.index(whole[8:12])])
            self.assertEqual(answer.choices[0].finish_reason, 'stop')

    def test_stop_string_never_leaks_from_a_stream(self):
        whole = self.complete(max_tokens=24).choices[0].text
        stop = whole[9:15]
        chunks, finishes = self.stream_of(self.complete(
            max_tokens=24, stop=stop, stream=True))
        self.assertEqual(''.join(chunk.choices[0].text for chunk in chunks),
                         whole[:whole.index(stop)])
        self.assertEqual(finishes, {0: 'stop'})

    def test_stop_token_ids(self):
        ids = self.api.answer(
            text='Once upon a time', sampling={'temperature': 0},
            stop={'max_tokens': 12}).ids
        answer = self.complete(extra_body={'stop_token_ids': [ids[4]]})
        self.assertEqual(answer.choices[0].finish_reason, 'stop')
        self.assertLessEqual(answer.usage.completion_tokens, 5)

    def test_too_many_stops_refused(self):
        self.refused(lambda: self.complete(stop=['a'] * 17), 'stop')

    def test_ignore_eos(self):
        answer = self.chat([{'role': 'user', 'content': 'Say yes.'}],
                           max_tokens=150, extra_body={'ignore_eos': True})
        self.assertEqual(answer.usage.completion_tokens, 150)

    def test_characters_are_whole_in_streams(self):
        chunks, _ = self.stream_of(self.complete(
            '😀😃😄😁', max_tokens=31, stream=True))
        text = ''.join(chunk.choices[0].text for chunk in chunks)
        self.assertTrue(text)
        for chunk in chunks:
            # A split character would come as replacements on both sides.
            self.assertNotIn('�', chunk.choices[0].text[:-1])

    # Sampling.

    def test_seed_repeats(self):
        one, two, other = (
            self.complete(temperature=1.0, seed=seed, max_tokens=24)
            .choices[0].text for seed in (7, 7, 8))
        self.assertEqual(one, two)
        self.assertNotEqual(one, other)

    def test_without_seed_answers_differ(self):
        texts = {self.complete(temperature=1.5, max_tokens=24).choices[0].text
                 for _ in range(3)}
        self.assertGreater(len(texts), 1)

    def test_top_p_and_top_k(self):
        greedy = self.complete().choices[0].text
        self.assertEqual(
            self.complete(temperature=1, top_p=0.0001).choices[0].text, greedy)
        self.assertEqual(
            self.complete(temperature=1, extra_body={'top_k': 1})
            .choices[0].text, greedy)

    def test_ranges_are_checked(self):
        for name, value in (('temperature', -1), ('top_p', 0), ('top_p', 1.5),
                            ('frequency_penalty', 1000),
                            ('presence_penalty', -1000)):
            with self.subTest(name):
                self.refused(lambda: self.complete(**{name: value}), name)

    def test_wrong_types_are_refused(self):
        for name, value in (('temperature', 'hot'), ('max_tokens', 'many'),
                            ('stop', 5), ('seed', 0.5), ('stream', 'yes'),
                            ('logit_bias', [1]), ('top_p', [])):
            with self.subTest(name):
                self.refused(
                    lambda: self.complete(extra_body={name: value}), name)

    def test_nulls_count_as_absent(self):
        names = ('stop', 'top_p', 'seed', 'logit_bias', 'logprobs', 'n',
                 'presence_penalty', 'stream', 'stream_options', 'suffix')
        answer = self.complete(extra_body={name: None for name in names})
        self.assertEqual(answer.choices[0].text,
                         self.complete().choices[0].text)

    def test_unknown_and_harmless_fields_are_tolerated(self):
        answer = self.chat(
            user='someone', metadata={'a': 'b'}, store=False,
            extra_body={'not_known_to_anyone': {'x': [1]}})
        self.assertTrue(answer.choices[0].message.content)

    def test_logit_bias(self):
        ids = self.api.answer(
            text='Once upon a time', sampling={'temperature': 0},
            stop={'max_tokens': 1}).ids
        banned = self.complete(logit_bias={str(ids[0]): -100},
                               extra_body={'return_token_ids': True})
        self.assertNotIn(ids[0], banned.choices[0].token_ids)
        forced = self.complete(logit_bias={'1234': 100}, max_tokens=3,
                               extra_body={'return_token_ids': True})
        self.assertEqual(forced.choices[0].token_ids, [1234] * 3)

    def test_allowed_token_ids(self):
        answer = self.complete(temperature=1, extra_body={
            'allowed_token_ids': [1234, 500], 'return_token_ids': True})
        self.assertLessEqual(set(answer.choices[0].token_ids), {1234, 500})

    def test_penalties_change_the_answer(self):
        plain = self.complete('a a a a a a a', max_tokens=16).choices[0].text
        for name in ('frequency_penalty', 'presence_penalty'):
            self.assertNotEqual(
                self.complete('a a a a a a a', max_tokens=16, **{name: 2})
                .choices[0].text, plain, name)
        self.assertNotEqual(
            self.complete('a a a a a a a', max_tokens=16,
                          extra_body={'repetition_penalty': 1.5})
            .choices[0].text, plain)

    def test_samplers_of_others(self):
        greedy = self.complete().choices[0].text
        # Each of them leaves the likeliest token only.
        for more in ({'min_p': 1}, {'top_n_sigma': 0.0001}):
            self.assertEqual(
                self.complete(temperature=1, extra_body=more).choices[0].text,
                greedy, more)
        for more in ({'typical_p': 0.5}, {'mirostat': 2}, {'mirostat_mode': 2},
                     {'xtc_probability': 0.5},
                     {'dry_multiplier': 0.8, 'dry_sequence_breakers': ['\n']}):
            one, two = (self.complete(temperature=1, seed=5, extra_body=more)
                        .choices[0].text for _ in range(2))
            self.assertTrue(one, more)
            self.assertEqual(one, two, more)

    def test_min_tokens(self):
        answer = self.chat([{'role': 'user', 'content': 'Say yes.'}],
                           max_tokens=150, extra_body={'min_tokens': 140})
        self.assertGreaterEqual(answer.usage.completion_tokens, 140)

    # Several answers.

    def test_n(self):
        answer = self.chat(n=3, temperature=1, seed=11)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2])
        texts = {choice.message.content for choice in answer.choices}
        self.assertGreater(len(texts), 1)
        self.assertEqual(answer.usage.completion_tokens, 36)
        again = self.chat(n=3, temperature=1, seed=11)
        self.assertEqual(
            [choice.message.content for choice in again.choices],
            [choice.message.content for choice in answer.choices])

    def test_n_stream(self):
        whole = self.chat(n=2, temperature=1, seed=11)
        chunks, finishes = self.stream_of(self.chat(
            n=2, temperature=1, seed=11, stream=True,
            stream_options={'include_usage': True}))
        self.assertEqual(finishes, {0: 'length', 1: 'length'})
        self.assertEqual(chunks[-1].usage.completion_tokens, 24)
        for index in range(2):
            deltas = [choice.delta for chunk in chunks
                      for choice in chunk.choices if choice.index == index]
            self.assertEqual([delta.role for delta in deltas],
                             ['assistant'] + [None] * (len(deltas) - 1))
            self.assertEqual(
                ''.join(delta.content or '' for delta in deltas),
                whole.choices[index].message.content)

    def test_n_of_several_prompts(self):
        prompts = ['Once upon a time', 'The sky']
        answer = self.complete(prompts, n=2)
        self.assertEqual([choice.index for choice in answer.choices],
                         [0, 1, 2, 3])
        for choice in answer.choices:
            self.assertEqual(
                choice.text,
                self.complete(prompts[choice.index // 2]).choices[0].text)

    def test_best_of(self):
        answer = self.complete(best_of=4, n=2, temperature=1, seed=3,
                               logprobs=0)
        self.assertEqual(len(answer.choices), 2)
        every = self.complete(n=4, temperature=1, seed=3, logprobs=0)

        def mean(choice):
            values = choice.logprobs.token_logprobs
            return sum(values) / len(values)

        best = sorted(every.choices, key=mean, reverse=True)[:2]
        self.assertEqual(sorted(choice.text for choice in answer.choices),
                         sorted(choice.text for choice in best))

    def test_best_of_less_than_n_refused(self):
        self.refused(lambda: self.complete(best_of=1, n=2), 'best_of')

    def test_beam_search(self):
        answer = self.complete(n=2, logprobs=0, temperature=0, extra_body={
            'use_beam_search': True, 'beam_width': 4})
        sums = [sum(choice.logprobs.token_logprobs)
                for choice in answer.choices]
        self.assertEqual(sums, sorted(sums, reverse=True))
        greedy = sum(self.complete(logprobs=0).choices[0]
                     .logprobs.token_logprobs)
        self.assertGreaterEqual(sums[0], greedy - 1e-3)

    def test_too_many_answers_refused(self):
        self.refused(lambda: self.complete(n=1000), 'n')

    # Scores of the prompt.

    def test_echo_with_logprobs(self):
        prompt = 'Once upon a time'
        answer = self.complete(prompt, echo=True, logprobs=1, max_tokens=4)
        logprobs = answer.choices[0].logprobs
        self.assertEqual(''.join(logprobs.tokens), answer.choices[0].text)
        self.assertIsNone(logprobs.token_logprobs[0])
        ids = self.api.call('Tokenize', text=prompt).ids
        # The last token's score, as if it had been generated.
        shorter = self.complete(list(ids[:-1]), max_tokens=1, logprobs=20)
        top = shorter.choices[0].logprobs.top_logprobs[0]
        self.assertAlmostEqual(
            logprobs.token_logprobs[len(ids) - 1], top[' time'], places=3)

    def test_score_without_generating(self):
        prompt = 'Once upon a time'
        answer = self.complete(prompt, echo=True, logprobs=0, max_tokens=0)
        self.assertEqual(answer.choices[0].text, prompt)
        self.assertEqual(answer.usage.completion_tokens, 0)
        scores = answer.choices[0].logprobs.token_logprobs
        self.assertEqual(
            scores, self.complete(prompt, echo=True, logprobs=0, max_tokens=4)
            .choices[0].logprobs.token_logprobs[:len(scores)])

    def test_prompt_logprobs(self):
        prompt = 'Once upon a time'
        ids = list(self.api.call('Tokenize', text=prompt).ids)
        answer = self.complete(prompt, extra_body={'prompt_logprobs': 2})
        scores = answer.choices[0].prompt_logprobs
        self.assertIsNone(scores[0])
        self.assertEqual(len(scores), len(ids))
        for token, score in zip(ids[1:], scores[1:]):
            self.assertGreaterEqual(len(score), 2)
            self.assertLessEqual(score[str(token)]['logprob'], 0)


if __name__ == '__main__':
    unittest.main()
