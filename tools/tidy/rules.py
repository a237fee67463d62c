"""The rules. Each yields (line, message) for one Source."""

import posixpath
import re

# Below this rank code is the functional core or its ports: no threads, locks,
# clocks, randomness or environment of its own.
FIRST_ADAPTER_RANK = 28
# Headers of Debian packages that are included with quotes.
_FOREIGN = (
    'CLI/', 'absl/', 'benchmark/', 'boost/', 'gmock/', 'google/protobuf/',
    'grpcpp/', 'grpc/', 'gtest/', 'nlohmann/', 'pcre2.h', 'prometheus/',
    'xxhash.h',
)
# From the head of a loop to the sort that makes its order harmless.
_LINES_UNTIL_SORT = 6
# A longer file is listed as a note, not an error.
LONG_FILE_LINES = 500

_CORE_HEADERS = frozenset(
    'barrier chrono condition_variable ctime future latch mutex random '
    'semaphore shared_mutex stop_token sys/socket.h thread time.h'.split()
)
_CORE_HEADER_PREFIXES = (
    'absl/flags/', 'absl/random/', 'absl/synchronization/',
    'absl/time/clock.h', 'boost/', 'google/protobuf/', 'grpcpp/',
)
_CORE_WORDS = re.compile(
    r'\b(?:getenv|secure_getenv|setenv|sleep|usleep|nanosleep|sleep_for'
    r'|sleep_until|SleepFor|clock_gettime|gettimeofday|srand|random_device'
    r'|mt19937(?:_64)?|default_random_engine)\b'
    r'|\babsl::Now\b|\bstd::(?:rand|time|chrono)\b'
)
_RANGE_FOR = re.compile(
    r'\bfor\s*\([^;{}]*?[^:]:(?!:)(?P<range>[^;{}]*?)\)\s*(?:\{|\w)'
)
_LINK = re.compile(r'\]\(([^)\s]+)\)')
_UNFINISHED = re.compile(r'\b(?:TODO|FIXME|XXX|HACK)\b')
_MACHINE_PATH = re.compile(r'(?<![\w.~}/])/(?:work|root|tmp|home)/\w')
_COPYRIGHT = re.compile(r'\bcopyright\b|\(c\) *(?:19|20)\d\d', re.IGNORECASE)


def includes(source, layers, exists):
    """Quoted includes name a file of the own library or of a dependency."""
    owners = layers.owners(source.path)
    allowed = layers.reachable(owners)
    for quoted, _, line in source.includes:
        if quoted is None or quoted.startswith(_FOREIGN):
            continue
        targets = layers.owners(quoted)
        if not exists(quoted):
            yield line, f'"{quoted}" is no file of the repository'
        elif not owners or source.is_test():
            continue  # binaries and tests: the linker decides
        elif not targets:
            yield line, f'"{quoted}" belongs to no library'
        elif not allowed & {target.name for target in targets}:
            yield line, (
                f'"{quoted}" belongs to {targets[0].name}, which is not among '
                f'the DEPS of {owners[0].name}'
            )


def core_purity(source, layers):
    """The core takes no lock, reads no clock and draws no randomness."""
    owners = layers.owners(source.path)
    if not owners or source.is_test():
        return
    rank = min(owner.rank for owner in owners)
    if rank >= FIRST_ADAPTER_RANK:
        return
    for quoted, angled, line in source.includes:
        name = quoted or angled
        if name in _CORE_HEADERS or name.startswith(_CORE_HEADER_PREFIXES):
            yield line, f'rank {rank} must not include {name}'
    for match in _CORE_WORDS.finditer(source.code):
        yield source.line_of(match.start()), (
            f'rank {rank} must not use {match.group()}'
        )


def _sorts_next(code, offset):
    """Whether what a loop collects is sorted within the next lines."""
    lines = code[offset:].split('\n', _LINES_UNTIL_SORT)
    return any('std::sort(' in line for line in lines[:_LINES_UNTIL_SORT])


def _said_not_to_matter(source, offset):
    """Whether the comment above says why any order will do."""
    before = source.text[:offset].split('\n')
    return len(before) > 1 and '// In any order:' in before[-2]


def hash_iteration(source, layers, header):
    """The core iterates a hash table only to collect what it sorts at once, or
    where a comment says why any order will do: the order of the table differs
    from run to run."""
    owners = layers.owners(source.path)
    if not owners or source.is_test():
        return
    if min(owner.rank for owner in owners) >= FIRST_ADAPTER_RANK:
        return
    names = source.hash_containers()
    if header is not None:
        names |= header.hash_containers()
    for match in _RANGE_FOR.finditer(source.code):
        last = re.search(r'(\w+)\s*$', match.group('range'))
        if last and last.group(1) in names and not (
            _sorts_next(source.code, match.end())
            or _said_not_to_matter(source, match.start())
        ):
            yield source.line_of(match.start()), (
                f'iterates the hash table {last.group(1)}'
            )
    for match in re.finditer(r'\b(\w+)\s*(?:\.|->)\s*c?begin\s*\(', source.code):
        if match.group(1) in names and not _said_not_to_matter(
            source, match.start()
        ):
            yield source.line_of(match.start()), (
                f'iterates the hash table {match.group(1)}'
            )


def own_locks(source):
    """Abseil's locks are not instrumented for ThreadSanitizer."""
    for match in re.finditer(r'\babsl::(?:Mutex|CondVar)\b', source.code):
        yield source.line_of(match.start()), (
            f'{match.group()} hides races from ThreadSanitizer; use std::mutex'
        )


def pragma_once(source):
    if source.is_header() and not re.search(
        r'^#pragma once$', source.text, re.MULTILINE
    ):
        yield 1, 'a header needs #pragma once'


def links(path, contents, exists):
    """Relative links of a document name something of the repository."""
    for number, line in enumerate(contents.splitlines(), 1):
        for target in _LINK.findall(line):
            if '://' in target or target.startswith('#'):
                continue
            joined = posixpath.normpath(posixpath.join(
                posixpath.dirname(path), target.split('#')[0]))
            if not exists(joined):
                yield number, f'links to {target}, which does not exist'


def text(contents):
    """What no file of the repository may say."""
    for number, line in enumerate(contents.splitlines(), 1):
        match = _UNFINISHED.search(line)
        if match:
            yield number, f'{match.group()}: finish it or leave it out'
        match = _MACHINE_PATH.search(line)
        if match:
            yield number, f'a path of one machine: {match.group()}...'
        if _COPYRIGHT.search(line):
            yield number, 'copyright notice: no code of others is kept here'
