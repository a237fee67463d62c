#!/usr/bin/env python3
"""Checks what a compiler does not: includes against the declared layers, the
purity of the core, and a few house rules. Prints one line for each violation;
exit status 1 when there are any.

  tools/tidy/tidy.py --build build/release
  tools/tidy/tidy.py --build build/release --headers   # each compiles alone
"""

import argparse
import pathlib
import sys

import headers
import layers as layers_lib
import rules
import source as source_lib

_CODE = ('.h', '.cc')
_TEXT = _CODE + ('.cu', '.cuh', '.proto', '.py', '.md', '.txt', '.cmake', '.sh')
# Generated, foreign or private to one machine.
_SKIPPED = ('.git', '.cache', 'build', 'models', 'shared', 'tests/data')
# Names what it forbids.
_SELF = 'tools/tidy/'


class Repository:
    """Files below a root, by path relative to it, with / between parts."""

    def __init__(self, root):
        self._root = pathlib.Path(root)

    def paths(self):
        found, left = [], ['']
        while left:
            directory = left.pop()
            for entry in (self._root / directory).iterdir():
                path = f'{directory}/{entry.name}' if directory else entry.name
                if path in _SKIPPED or entry.is_symlink():
                    continue
                if entry.is_dir():
                    if entry.name != '__pycache__':
                        left.append(path)
                elif entry.suffix in _TEXT or self._is_script(entry):
                    found.append(path)
        return sorted(found)

    @staticmethod
    def _is_script(entry):
        if entry.suffix:
            return False
        with entry.open('rb') as file:
            return file.read(2) == b'#!'

    def read(self, path):
        return (self._root / path).read_text(encoding='utf-8')

    def exists(self, path):
        return (self._root / path).is_file()

    def exists_any(self, path):
        """A file or a folder."""
        return (self._root / path).exists()


def _generated_exists(repository, path):
    """protos/x.pb.h is made from protos/x.proto."""
    for suffix in ('.grpc.pb.h', '.pb.h'):
        if path.endswith(suffix):
            return repository.exists(path[: -len(suffix)] + '.proto')
    return repository.exists(path)


def check(repository, layers):
    """Returns (violations, notes), each a list of printable lines."""
    violations, notes = [], []

    def report(path, found):
        violations.extend(f'{path}:{line}: {what}' for line, what in found)

    for path in repository.paths():
        contents = repository.read(path)
        if not path.startswith(_SELF):
            report(path, rules.text(contents))
        if path.endswith('.md'):
            report(path, rules.links(path, contents, repository.exists_any))
        lines = contents.count('\n')
        if lines > rules.LONG_FILE_LINES and not path.endswith('.md'):
            notes.append(f'{path}: note: {lines} lines')
        if not path.endswith(_CODE):
            continue
        source = source_lib.Source(path, contents)
        header_path = path[:-3] + '.h' if path.endswith('.cc') else ''
        header = None
        if header_path and repository.exists(header_path):
            header = source_lib.Source(header_path, repository.read(header_path))
        report(path, rules.includes(
            source, layers, lambda p: _generated_exists(repository, p)))
        report(path, rules.core_purity(source, layers))
        report(path, rules.hash_iteration(source, layers, header))
        report(path, rules.own_locks(source))
        report(path, rules.pragma_once(source))
    return violations, notes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    parser.add_argument('--root', default=root, type=pathlib.Path)
    parser.add_argument('--build', required=True, type=pathlib.Path,
                        help='a configured build folder, for its layers.txt')
    parser.add_argument('--headers', action='store_true',
                        help='compile every header of a library alone')
    arguments = parser.parse_args()

    table = arguments.build / 'layers.txt'
    if not table.is_file():
        sys.exit(f'tidy: {table} is missing; configure first')
    layers = layers_lib.Layers.parse(table.read_text())
    repository = Repository(arguments.root)
    if arguments.headers:
        violations, notes = headers.check(
            repository, layers, arguments.root, arguments.build), []
    else:
        violations, notes = check(repository, layers)
    for line in notes + violations:
        print(line)
    print(f'tidy: {len(violations)} violations')
    sys.exit(1 if violations else 0)


if __name__ == '__main__':
    main()
