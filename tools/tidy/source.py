"""A C++ file as the rules see it: lines, code without comments, includes."""

import re

_TOKEN = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<delimiter>[^(\s"\\]*)\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)
_INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE
)
_HASH_TYPE = re.compile(
    r'\b(?:flat_hash_(?:map|set)|node_hash_(?:map|set)'
    r'|unordered_(?:multi)?(?:map|set))\s*<'
)


def _blank(text):
    return re.sub(r'[^\n]', ' ', text)


class Source:
    """One file. Offsets into `text` and `code` are the same."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        # Includes first: their quoted names are strings to the blanking.
        commentless = _TOKEN.sub(
            lambda m: _blank(m.group()) if m.group()[0] == '/' else m.group(),
            text,
        )
        self.includes = [
            (m.group(1), m.group(2), self.line_of(m.start()))
            for m in _INCLUDE.finditer(commentless)
        ]
        self.code = _TOKEN.sub(lambda m: _blank(m.group()), text)

    def line_of(self, offset):
        return self.text.count('\n', 0, offset) + 1

    def is_header(self):
        return self.path.endswith('.h')

    def is_test(self):
        stem = self.path.rsplit('.', 1)[0]
        return stem.endswith(('_test', '_fuzz', '_mutation', '_benchmark'))

    def hash_containers(self):
        """Names of variables, members and aliases declared as hash tables."""
        names = set()
        for match in _HASH_TYPE.finditer(self.code):
            end = self._closing_angle(match.end())
            declared = re.match(r'\s*[&*]?\s*(\w+)\s*[;={(,)]', self.code[end:])
            if declared:
                names.add(declared.group(1))
        return names

    def _closing_angle(self, position):
        depth = 1
        while position < len(self.code) and depth > 0:
            depth += {'<': 1, '>': -1}.get(self.code[position], 0)
            position += 1
        return position
