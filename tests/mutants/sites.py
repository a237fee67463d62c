"""Finds the places where a mutant can be made: flipped comparisons and
conditions, changed constants and arithmetic, dropped statements, early returns.

Works on clang-formatted C++: a binary operator has a space on each side, a
template bracket has none.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Site:
    path: str
    line: int  # from 1
    kind: str
    start: int  # in the file's text
    end: int
    replacement: str

    def apply(self, text):
        return text[:self.start] + self.replacement + text[self.end:]

    def describe(self, text):
        """One line."""
        old = ' '.join(text[self.start:self.end].split())
        new = ' '.join(self.replacement.split())
        return f'{self.path}:{self.line} {self.kind}: {old}' + (
            f' -> {new}' if new else '')


_SWAPS = {
    'comparison': {
        '<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==',
    },
    'logic': {'&&': '||', '||': '&&'},
    'arithmetic': {'+': '-', '-': '+', '+=': '-=', '-=': '+=', '++': '--'},
    'constant': {'true': 'false', 'false': 'true'},
}
# Left alone, because nothing depends on them but what a reader sees, how fast
# it runs or what is counted, or because they state what is true anyway.
_UNTOUCHED = re.compile(
    r'^\s*(#|CHECK|DCHECK|Log\(|Sometimes<|static_assert|template|using |'
    r'constexpr const char|case |friend |return absl::StrCat|absl::StrCat|'
    r'[\w.>\-]+(\.|->)(reserve|shrink_to_fit)\()')
_STATEMENT = re.compile(
    r'^[ ]+(?!return\b|if\b|for\b|while\b|switch\b|else\b|case\b|break|'
    r'continue|delete\b|auto\b|const\b|static\b|using\b|class\b|struct\b|'
    r'enum\b|default\b|goto\b|ASSIGN_OR_RETURN\b)'
    r'[*(]?[A-Za-z_][\w.>\-\[\]():*&]*'
    r'( (=|\+=|-=|\|=|&=|<<=) |\(|\+\+;|--;)')
_FUNCTION = re.compile(
    r'^(?P<type>[A-Za-z_][\w:<>,*& ]*?[ *&])(?P<name>[\w:~]+)\((?:[^;{}]|\n)*?\)'
    r'( const)?( noexcept)? \{\n', re.M)


def mask(text):
    """The same text with comments and literals blanked, of the same length."""
    def blank(match):
        return re.sub(r'[^\n]', '\x00', match.group(0))
    return re.sub(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', blank,
        text, flags=re.S)


def _line_of(text, at):
    return text.count('\n', 0, at) + 1


def _untouched_spans(masked):
    """Statements that are left alone, from their first to their last line."""
    spans = []
    at = 0
    for line in masked.split('\n'):
        if _UNTOUCHED.match(line):
            end = masked.find(';', at)
            brace = masked.find('{', at)
            stop = min(x for x in (end, brace, len(masked)) if x >= 0)
            spans.append((at, max(stop, at + len(line))))
        at += len(line) + 1
    return spans


def _in_function(masked):
    """For each position, whether it is inside a function's body."""
    inside = bytearray(len(masked))
    stack = [False]
    header = 0
    for at, c in enumerate(masked):
        inside[at] = stack[-1]
        if c == '{':
            scope = re.search(r'\b(class|struct|enum|namespace|union)\b',
                              masked[header:at])
            stack.append(not scope)
        elif c == '}':
            stack.pop()
        if c in ';{}':
            header = at + 1
    return inside


def _statements(masked):
    """(start, end) of whole statements that begin and end on lines of theirs."""
    inside = _in_function(masked)
    at = 0
    lines = masked.split('\n')
    starts = []
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    for i, line in enumerate(lines):
        if not _STATEMENT.match(line) or not inside[starts[i]]:
            continue
        previous = lines[i - 1].rstrip() if i else ''
        if previous and previous[-1] not in ';{}:\x00':
            continue  # it goes on from the line before
        depth = 0
        for j in range(i, min(i + 12, len(lines))):
            for c in lines[j]:
                depth += (c in '([{') - (c in ')]}')
            line_end = lines[j].rstrip('\x00 ')  # without a comment
            if depth == 0 and line_end.endswith(';'):
                yield starts[i], starts[j] + len(line_end)
                break
            if depth < 0 or (depth == 0 and line_end.endswith('{')):
                break


def find(path, text):
    masked = mask(text)
    spans = _untouched_spans(masked)

    def touched(at):
        return not any(a <= at < b for a, b in spans)

    sites = []

    def add(kind, start, end, replacement):
        if start == end or touched(start):
            sites.append(
                Site(path, _line_of(text, start), kind, start, end,
                     replacement))

    for kind, swaps in _SWAPS.items():
        for old, new in swaps.items():
            if old.isalpha():
                pattern = rf'\b{old}\b'
            elif old == '++':
                pattern = r'\+\+'
            else:
                pattern = rf'(?<= ){re.escape(old)}(?=[ \n])'
            for match in re.finditer(pattern, masked):
                add(kind, match.start(), match.end(), new)
    for match in re.finditer(r'(?<![\w.\x00])(\d+)(?![\w.\x00])', masked):
        value = int(match.group(1))
        add('constant', match.start(), match.end(),
            str(1 if value == 0 else value + 1))
    for match in re.finditer(r'\bif \((?!constexpr)', masked):
        depth, end = 1, match.end()
        while depth and end < len(masked):
            depth += (masked[end] == '(') - (masked[end] == ')')
            end += 1
        condition = text[match.end():end - 1]
        if ';' in condition:  # with an initialiser
            head, condition = condition.rsplit(';', 1)
            add('condition', match.end(), end - 1,
                f'{head}; !({condition.strip()})')
        else:
            declaration = re.match(r'[\w:<>*& ]+ \*?\w+ = ', condition)
            if not declaration:
                add('condition', match.end(), end - 1, f'!({condition})')
    for start, end in _statements(masked):
        add('dropped statement', start, end, '')
    for match in _FUNCTION.finditer(masked):
        void = match.group('type').split()[-1] == 'void'
        add('early return', match.end(), match.end(),
            '  return;\n' if void else '  return {};\n')
    return sorted(set(sites), key=lambda s: (s.start, s.end, s.kind))
