"""Seeds one violation of each rule and expects it to be named."""

import unittest

import layers as layers_lib
import rules
import source as source_lib
import tidy

_LAYERS = layers_lib.Layers.parse(
    '0|base|common/base|absl::strings,\n'
    '12|model|common/model|base,\n'
    '12|model_text|common/model/text|model,\n'
    '24|engine|common/engine|model,\n'
    '28|protos|protos|protobuf::libprotobuf,\n'
    '31|runtime|common/runtime|base,\n'
)


class _Files:
    """A repository in memory."""

    def __init__(self, files):
        self._files = files

    def paths(self):
        return sorted(self._files)

    def read(self, path):
        return self._files[path]

    def exists(self, path):
        return path in self._files

    def exists_any(self, path):
        return any(
            file == path or file.startswith(path + '/') for file in self._files)


def _check(files):
    violations, _ = tidy.check(_Files(files), _LAYERS)
    return violations


class IncludeTest(unittest.TestCase):

    def includes(self, path, line):
        return _check({
            'common/base/id.h': '#pragma once\n',
            'common/model/spec.h': '#pragma once\n',
            'common/engine/loop.h': '#pragma once\n',
            'loose/thing.h': '#pragma once\n',
            'protos/api.proto': '',
            path: line + '\n',
        })

    def test_own_directory_and_declared_dependency(self):
        self.assertEqual(
            self.includes('common/model/a.cc', '#include "common/base/id.h"'),
            [])
        self.assertEqual(
            self.includes('common/model/a.cc', '#include "common/model/spec.h"'),
            [])

    def test_transitive_dependency(self):
        self.assertEqual(
            self.includes('common/engine/a.cc', '#include "common/base/id.h"'),
            [])

    def test_undeclared_dependency(self):
        self.assertEqual(
            self.includes(
                'common/model/a.cc', '#include "common/engine/loop.h"'),
            ['common/model/a.cc:1: "common/engine/loop.h" belongs to engine, '
             'which is not among the DEPS of model'])

    def test_nearest_directory_owns(self):
        self.assertEqual(
            len(self.includes(
                'common/base/a.cc', '#include "common/model/spec.h"')), 1)

    def test_missing_file(self):
        self.assertEqual(
            self.includes('common/model/a.cc', '#include "common/none.h"'),
            ['common/model/a.cc:1: "common/none.h" is no file of the '
             'repository'])

    def test_file_of_no_library(self):
        self.assertEqual(
            self.includes('common/model/a.cc', '#include "loose/thing.h"'),
            ['common/model/a.cc:1: "loose/thing.h" belongs to no library'])

    def test_generated_header(self):
        self.assertEqual(
            self.includes('protos/a.cc', '#include "protos/api.grpc.pb.h"'), [])
        self.assertEqual(
            len(self.includes(
                'common/model/a.cc', '#include "protos/api.pb.h"')), 1)

    def test_commented_out_include_does_not_count(self):
        self.assertEqual(
            self.includes('common/model/a.cc', '// #include "common/none.h"'),
            [])

    def test_tests_may_include_anything_that_exists(self):
        self.assertEqual(
            self.includes(
                'common/model/a_test.cc', '#include "common/engine/loop.h"'),
            [])


class CoreTest(unittest.TestCase):

    def assert_banned(self, line, word):
        found = _check({'common/engine/a.cc': line + '\n'})
        self.assertEqual(len(found), 1, found)
        self.assertIn(word, found[0])
        # The same is fine in an adapter and in a test.
        self.assertEqual(_check({'common/runtime/a.cc': line + '\n'}), [])
        self.assertEqual(_check({'common/engine/a_test.cc': line + '\n'}), [])

    def test_headers(self):
        for name in ('thread', 'mutex', 'condition_variable', 'chrono',
                     'random', 'future', 'shared_mutex'):
            self.assert_banned(f'#include <{name}>', name)
        self.assert_banned('#include "absl/time/clock.h"', 'clock.h')

    def test_words(self):
        self.assert_banned('auto x = getenv("A");', 'getenv')
        self.assert_banned('usleep(1);', 'usleep')
        self.assert_banned('std::random_device device;', 'random_device')
        self.assert_banned('auto now = absl::Now();', 'absl::Now')

    def test_words_in_comments_and_strings_do_not_count(self):
        self.assertEqual(
            _check({'common/engine/a.cc': '// getenv\nf("sleep");\n'}), [])

    def test_hash_iteration(self):
        header = '#pragma once\nabsl::flat_hash_map<int, Id<T>> slots_;\n'
        for loop in ('for (auto& [k, v] : slots_) {}',
                     'for (const auto& e : this->slots_) f(e);',
                     'auto it = slots_.begin();'):
            self.assertEqual(
                _check({'common/engine/a.h': header,
                        'common/engine/a.cc': loop + '\n'}),
                ['common/engine/a.cc:1: iterates the hash table slots_'])
        self.assertEqual(
            _check({'common/engine/a.h': header,
                    'common/engine/a.cc': 'for (int i : list_) f(i);\n'}), [])
        for loop in ('auto it = slots_.begin();', 'for (auto& e : slots_) {}'):
            self.assertEqual(
                _check({'common/engine/a.h': header,
                        'common/engine/a.cc':
                        f'// In any order: all go.\n{loop}\n'}),
                [])
        collected = 'for (auto& e : slots_) {\n  all.push_back(e);\n}\n'
        self.assertEqual(
            _check({'common/engine/a.h': header,
                    'common/engine/a.cc':
                    collected + 'std::sort(all.begin(), all.end());\n'}), [])
        self.assertEqual(
            len(_check({'common/engine/a.h': header,
                        'common/engine/a.cc': collected})), 1)
        self.assertEqual(
            _check({'common/runtime/a.cc':
                    'std::unordered_map<int, int> m;\n'
                    'for (auto& e : m) f(e);\n'}), [])


class HouseRuleTest(unittest.TestCase):

    def test_abseil_locks_anywhere(self):
        self.assertEqual(
            len(_check({'common/runtime/a.cc': 'absl::Mutex m;\n'})), 1)

    def test_pragma_once(self):
        self.assertEqual(
            _check({'common/base/a.h': 'int x;\n'}),
            ['common/base/a.h:1: a header needs #pragma once'])

    def test_text(self):
        for line, word in (('// TO' 'DO: later', 'TODO'),
                           ('cd /wo' 'rk/main', '/work'),
                           ('Copy' 'right 2020 Someone', 'copyright')):
            found = _check({'docs/a.md': line + '\n'})
            self.assertEqual(len(found), 1, line)
            self.assertIn(word, found[0])
        self.assertEqual(_check({'docs/a.md': 'the work/tmp folder\n'}), [])

    def test_links(self):
        document = ('[a](../common/base/id.h) [b](../common) [c](#part)\n'
                    '[d](https://example.org/x) [e](gone.md)\n')
        self.assertEqual(
            _check({'docs/a.md': document,
                    'common/base/id.h': '#pragma once\n'}),
            ['docs/a.md:2: links to gone.md, which does not exist'])

    def test_long_files_are_notes(self):
        violations, notes = tidy.check(
            _Files({'common/base/a.cc': 'int x;\n' * 501}), _LAYERS)
        self.assertEqual(violations, [])
        self.assertEqual(notes, ['common/base/a.cc: note: 501 lines'])


class SourceTest(unittest.TestCase):

    def test_hash_containers(self):
        source = source_lib.Source('a.cc', (
            'absl::flat_hash_map<int, std::vector<int>> one_;\n'
            'std::unordered_set<int>& two = f();\n'
            'std::map<int, int> three_;\n'))
        self.assertEqual(source.hash_containers(), {'one_', 'two'})

    def test_digit_separators_are_no_characters(self):
        source = source_lib.Source('a.cc', "int x = 1'000'000; getenv(y);\n")
        self.assertIn('getenv', source.code)

    def test_raw_strings(self):
        source = source_lib.Source('a.cc', 'f(R"(a " getenv)"); usleep(1);\n')
        self.assertNotIn('getenv', source.code)
        self.assertIn('usleep', source.code)


class LayersTest(unittest.TestCase):

    def test_reachable(self):
        engine = _LAYERS.owners('common/engine/x.h')
        self.assertEqual(
            _LAYERS.reachable(engine), {'engine', 'model', 'base'})


if __name__ == '__main__':
    unittest.main()
