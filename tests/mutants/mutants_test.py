"""The tool against itself: what it finds, and that a woven mutant does what the
same mutant does in a build of its own."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import sites
import weave

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_CXX = [os.environ.get('CXX', 'c++'), '-std=c++20', '-w', f'-I{_ROOT}']

# Something of every kind, and operands that are hard to tell apart.
_PROGRAM = '''\
#include <cstdio>

struct Pair {
  int a = 2, b = 5;
};

static int Sum(int n) {
  int sum = 0;
  for (int i = 0; i < n && i < 50; ++i) {
    if (i == 3 || i + 1 == 9) continue;
    sum += i * 2;
  }
  return sum;
}

static bool Between(const Pair& pair, int x) {
  return pair.a <= x && x < pair.b;
}

static bool Any(bool p, bool q, bool r, bool s) {
  return p && q || r && s;
}

static void Count(Pair* pair) {
  ++pair->a;
  pair->b -= 1;
}

int main() {
  Pair pair;
  Count(&pair);
  if (int total = Sum(12); total > 40) {
    std::printf("%d %d %d\\n", total, pair.a, pair.b);
  }
  bool found = true;
  for (int x = 1; x != 7; ++x) {
    found = found && Between(pair, x);
    std::printf("%d", Between(pair, x) ? 1 : 0);
  }
  for (int i = 0; i < 16; ++i) {
    std::printf("%d", Any(i & 1, i & 2, i & 4, i & 8));
  }
  std::printf(" %d\\n", found);
}
'''


def _planted(text, number):
    return sites.find('x.cc', text)[number].apply(text)


class SitesTest(unittest.TestCase):

    def _found(self, text):
        return [(site.kind, site.apply(text))
                for site in sites.find('x.cc', text)]

    def test_finds_each_kind(self):
        kinds = {site.kind for site in sites.find('x.cc', _PROGRAM)}
        self.assertEqual(kinds, {'comparison', 'logic', 'arithmetic',
                                 'constant', 'condition', 'dropped statement',
                                 'early return'})

    def test_leaves_text_comments_and_checks_alone(self):
        self.assertEqual(self._found('  // a < 3\n'), [])
        self.assertEqual(self._found('  CHECK(a < 3) << "b == 4";\n'), [])
        self.assertEqual(self._found('void F() {\n  all.reserve(n + 1);\n}\n'),
                         [('early return',
                           'void F() {\n  return;\n  all.reserve(n + 1);\n}\n'
                           )])

    def test_a_declaration_is_no_statement(self):
        self.assertEqual(self._found('class A {\n  A(const A&) = delete;\n};\n'),
                         [])

    def test_an_operator_at_the_end_of_a_line(self):
        self.assertIn(('logic', 'x = a ||\n    b;\n'),
                      self._found('x = a &&\n    b;\n'))


class WeaveTest(unittest.TestCase):

    def _build(self, folder, name, text):
        """The program, or None when it does not compile."""
        source = folder / f'{name}.cc'
        source.write_text(text)
        program = folder / name
        done = subprocess.run([*_CXX, source, '-o', program],
                              capture_output=True)
        return program if done.returncode == 0 else None

    def _run(self, program, mutant='0'):
        try:
            done = subprocess.run([program], capture_output=True, timeout=1,
                                  env=dict(os.environ, MUTANT=mutant))
        except subprocess.TimeoutExpired:
            return 'time limit'
        return done.returncode, done.stdout

    def test_a_woven_mutant_is_the_mutant(self):
        found = dict(enumerate(sites.find('x.cc', _PROGRAM), 1))
        left = dict(found)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            truth = self._run(self._build(folder, 'truth', _PROGRAM))
            while left:  # those that overlap wait for the next build
                text, numbers = weave.weave(_PROGRAM, left.items())
                self.assertTrue(numbers, left)
                woven = self._build(folder, 'woven', text)
                self.assertIsNotNone(woven)
                self.assertEqual(self._run(woven), truth)
                for number in numbers:
                    site = left.pop(number)
                    alone = self._build(folder, 'alone', site.apply(_PROGRAM))
                    self.assertEqual(self._run(woven, str(number)),
                                     self._run(alone), site)


if __name__ == '__main__':
    unittest.main()
