"""The penstock command without a cluster: exit statuses, streams, cases."""

import json
import tempfile
import unittest

import cluster
from cluster import penstock


def cases(name):
    with open(cluster.CASES / name, encoding='ascii') as file:
        return [json.loads(line) for line in file]


def lines(documents):
    return ''.join(json.dumps(document) + '\n' for document in documents)


class TextTest(unittest.TestCase):

    def test_tokenizer_cases(self):
        wanted = cases('tokenizer.jsonl')
        done = penstock('tokenize', '--json', '--model', cluster.MODEL,
                        stdin=lines({'text': case['text'],
                                     'parse_special': case['parse_special']}
                                    for case in wanted))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, '')
        self.assertEqual([json.loads(line)['ids']
                          for line in done.stdout.splitlines()],
                         [case['ids'] for case in wanted])

    def test_detokenizer_cases(self):
        wanted = [case for case in cases('tokenizer.jsonl')
                  if case['decoded'] is not None]
        done = penstock('detokenize', '--json', '--model', cluster.MODEL,
                        stdin=lines({'ids': case['ids']} for case in wanted))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([json.loads(line)['text']
                          for line in done.stdout.splitlines()],
                         [case['decoded'] for case in wanted])

    def test_bad_line_is_named(self):
        done = penstock('tokenize', '--json', '--model', cluster.MODEL,
                        stdin='{"text":"a"}\n{"text":\n')
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stdout.splitlines()), 1)
        self.assertIn('line 2', done.stderr)


class StatusTest(unittest.TestCase):

    def assert_fails(self, status, words, *arguments):
        done = penstock(*arguments)
        self.assertEqual(done.returncode, status, done)
        self.assertEqual(done.stdout, '')
        for word in words:
            self.assertIn(word, done.stderr)

    def test_wrong_usage_is_2(self):
        self.assert_fails(2, [])
        self.assert_fails(2, [], 'nonsense')
        self.assert_fails(2, [], 'tokenize')  # --model is missing
        self.assert_fails(2, [], 'generate', '--max-tokens', 'many')
        self.assert_fails(2, [], 'generate', '--json', '--stream-json', 'x')
        self.assert_fails(2, [], 'up', str(cluster.MODEL), '--prefill', '0')
        self.assert_fails(2, [], 'up', str(cluster.MODEL), '--transport', 'x')

    def test_help_and_version_are_0(self):
        for flag in ('--help', '--version'):
            done = penstock(flag)
            self.assertEqual(done.returncode, 0)
            self.assertIn('penstock', done.stdout)

    def test_unreachable_router(self):
        address = f'127.0.0.1:{cluster.free_port()}'
        for command in (['generate', 'hi'], ['bench', 'serve']):
            self.assert_fails(
                1, [address, 'penstock up'], *command, '--server', address)

    def test_prompt_that_is_no_text(self):
        self.assert_fails(1, ['--prompt-ids'], 'generate', '--prompt-ids', '[1,')

    def test_missing_model_names_the_way_out(self):
        self.assert_fails(1, ['nowhere.gguf'], 'tokenize', '--model',
                          'nowhere.gguf')
        self.assert_fails(1, ['nowhere', 'get_model'], 'models', '--dir',
                          'nowhere')


class ModelsTest(unittest.TestCase):

    def test_describes_good_and_broken_files(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f'{folder}/broken.gguf', 'wb') as file:
                file.write(b'GGUF\3\0\0\0')
            done = penstock('models', '--json', '--dir', folder)
            broken, = json.loads(done.stdout)['models']
            self.assertIn('broken.gguf', broken['error'])
        done = penstock('models', '--json', '--dir', cluster.MODEL.parent)
        self.assertEqual(done.returncode, 0, done.stderr)
        model, = [model for model in json.loads(done.stdout)['models']
                  if model['path'] == str(cluster.MODEL)]
        # tests/data/cases/README.md: the model's size; 134,515,008 parameters.
        self.assertEqual(model['bytes'], 98362432)
        self.assertEqual(model['parameters'], 134515008)
        self.assertEqual(model['vocab_size'], 49152)


class DoctorTest(unittest.TestCase):

    def test_names_each_check(self):
        done = penstock('doctor', '--json', '--model', cluster.MODEL)
        checks = {check['name']: check
                  for check in json.loads(done.stdout)['checks']}
        self.assertEqual(checks['model']['status'], 'ok')
        self.assertEqual(checks['servers']['status'], 'ok')
        self.assertIn('shared memory', checks)

    def test_missing_model_is_a_failure(self):
        done = penstock('doctor', '--model', 'nowhere.gguf')
        self.assertEqual(done.returncode, 1)
        self.assertIn('nowhere.gguf', done.stderr)


if __name__ == '__main__':
    unittest.main()
