"""Writes many mutants into one copy of the sources, each asleep until the
environment names it (switch.h), so that they are built together, once.

What cannot be told apart at run time (a constant of a type, a constexpr) is
left out; such a mutant needs a build of its own.
"""

import re

import sites as sites_lib

_BINARY = {'<', '<=', '>', '>=', '==', '!=', '+', '-', '+=', '-='}
# What an operand of && or || cannot reach beyond, at its own depth.
_BOUNDARY = re.compile(
    r'[;,]|\|\||[?:](?=[ \n])|(?<= )([+\-*/%|&^]|<<|>>)?=(?=[ \n])|\breturn\b')


class Edit:
    """Text put around [start, end), or in its place."""

    def __init__(self, start, end, before='', after='', instead=None):
        self.start, self.end = start, end
        self.before, self.after, self.instead = before, after, instead


def _left_end(masked, at):
    """Where the operand that ends at `at` begins."""
    depth = 0
    for i in range(at - 1, -1, -1):
        c = masked[i]
        if c in ')]}':
            depth += 1
        elif c in '([{':
            if depth == 0:
                return i + 1
            depth -= 1
        elif depth == 0:
            match = _BOUNDARY.match(masked, i)
            if match and match.end() <= at:
                return match.end()
    return None


def _right_end(masked, at):
    depth = 0
    for i in range(at, len(masked)):
        c = masked[i]
        if c in '([{':
            depth += 1
        elif c in ')]}':
            if depth == 0:
                return i
            depth -= 1
        elif depth == 0 and _BOUNDARY.match(masked, i):
            return i
    return None


def _logic(site, masked, awake):
    """a && b as !(!a || !b) and the other way round."""
    left = _left_end(masked, site.start)
    right = _right_end(masked, site.end)
    if left is None or right is None:
        return None
    operator = masked[site.start:site.end]
    return [Edit(left, right, '((static_cast<bool>(',
                 f') != {awake}) != {awake})'),
            Edit(site.start, site.end,
                 instead=f') != {awake} {operator} static_cast<bool>(')]


def edits(site, masked, number):
    """The changes that plant `site` asleep, or None."""
    statement = masked[masked.rfind(';', 0, site.start) + 1:site.start]
    if re.search(r'\bconstexpr\b', statement):
        return None
    awake = f'mutants::On({number})'
    old = masked[site.start:site.end]
    if site.kind == 'logic':
        return _logic(site, masked, awake)
    if old in _BINARY and site.kind in ('comparison', 'arithmetic'):
        return [Edit(site.start, site.end,
                     instead=f'{old} mutants::Or<{number}>{{}} {old}')]
    if old == '++':
        if not re.match(r'[\w(*]', masked[site.end:site.end + 1]):
            return None
        return [Edit(site.start, site.end,
                     instead=f'mutants::Or<{number}>{{}}->*')]
    if site.kind == 'constant':
        return [Edit(site.start, site.end,
                     instead=f'({awake} ? {site.replacement} : {old})')]
    if site.kind == 'condition':
        head = site.replacement.index('!(')
        start = site.start + head if head else site.start
        return [Edit(start, site.end, f'{awake} != static_cast<bool>(', ')')]
    if site.kind == 'dropped statement':
        return [Edit(site.start, site.end, f'if (!{awake}) {{', '}')]
    if site.kind == 'early return':
        body = site.replacement.strip()
        return [Edit(site.start, site.end, f'if ({awake}) {body} ')]
    return None


def covers(text, site, errors):
    """Whether one of `errors`, (path, line) pairs, is where `site` changes."""
    changed = edits(site, sites_lib.mask(text), 0)
    lines = [text.count('\n', 0, at) + 1
             for edit in changed for at in (edit.start, edit.end)]
    return any(path == site.path and min(lines) <= line <= max(lines)
               for path, line in errors)


def weave(text, numbered):
    """`text` with those of `numbered`, (number, site) pairs, that can be
    planted together, and the numbers of those. Lines keep their numbers."""
    masked = sites_lib.mask(text)
    planted = []
    numbers = []
    for number, site in numbered:
        mine = edits(site, masked, number)
        if mine is None or any(_cross(a, b) for a in mine for b in planted):
            continue
        planted += mine
        numbers.append(number)
    # (where, what comes first there, text)
    marks = []
    for i, edit in enumerate(planted):
        length = edit.end - edit.start
        if edit.instead is not None:
            marks.append((edit.start, (2, 0, i), edit.instead))
        else:
            marks.append((edit.start, (1, -length, i), edit.before))
            marks.append((edit.end, (0, length, -i), edit.after))
    gone = [(e.start, e.end) for e in planted if e.instead is not None]
    marks.sort(key=lambda mark: mark[:2])
    out = ['#include "tests/mutants/switch.h"\n#line 1\n'] if numbers else []
    at = 0
    gone.sort()
    for where, _, new in marks:
        out.append(_without(text, at, where, gone))
        out.append(new)
        at = where
    out.append(_without(text, at, len(text), gone))
    return ''.join(out), numbers


def _cross(a, b):
    """Neither apart nor one around the other."""
    if a.end <= b.start or b.end <= a.start:
        return False
    if a.start <= b.start and b.end <= a.end and a.instead is None:
        return False
    return not (b.start <= a.start and a.end <= b.end and b.instead is None)


def _without(text, start, end, gone):
    out = []
    at = start
    for a, b in gone:
        if b <= start or a >= end:
            continue
        out.append(text[at:max(a, at)])
        at = max(at, b)
    if at < end:
        out.append(text[at:end])
    return ''.join(out)
