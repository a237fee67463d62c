"""Random chat templates with variables for them, and what jinja2 makes of each.

    random_templates.py 2000 1 > random.jsonl     # COUNT SEED

Templates are drawn from a grammar that keeps an eye on types, so that most of
them render; now and then it does not look, so that some of them fail. Needs
jinja2 (see README.md).
"""

import json
import random
import sys

from environment import environment, outcome

WORDS = ['user', 'assistant', 'system', 'Hi', 'a b', ' x ', '', 'Zoë', 'ΑΣ ας', '你好',
         '<|im_end|>', "it's", '"q"', 'line\nline', 'ß', 'tab\t', 'A-b (c)', '12',
         '3.5', 'true', '{"a": 1}', 'a,b,,c', '%s', '{}', '\u2028', '\U0001f600é']
TEXTS = ['', ' ', '\n', 'x', ' y ', '\n  ', '<|start|>', 'a\n', '\n\n', ' { ', '}', '# ',
         '- é', '\t\n']
ROLES = ['system', 'user', 'assistant', 'tool']


class Generator:
    """One template and its variables, from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = {
            'str': ['s', 'bos_token'], 'int': ['n', 'k'], 'bool': ['flag'],
            'list': ['numbers', 'strings'], 'dict': ['d'], 'messages': ['messages'],
            'message': [], 'any': [], 'float': ['f'], 'space': [], 'macro': [],
        }
        self.loops = 0
        self.fresh = 0

    # Helpers

    def pick(self, items):
        return self.random.choice(items)

    def chance(self, percent):
        return self.random.random() * 100 < percent

    def name(self, kind):
        return self.pick(self.names[kind])

    def quoted(self, text):
        quote = self.pick('\'"')
        out = text.replace('\\', '\\\\').replace(quote, '\\' + quote)
        return quote + out.replace('\n', self.pick(['\\n', '\n'])) + quote

    # Variables

    def word(self):
        return self.pick(WORDS)

    def message_value(self):
        message = {'role': self.pick(ROLES), 'content': self.word()}
        if self.chance(20):
            message['content'] = [
                {'type': 'text', 'text': self.word()}
                for _ in range(self.random.randrange(3))
            ]
        if self.chance(15):
            message['content'] = None
        if self.chance(25):
            message['tool_calls'] = [
                {'function': {'name': self.word(), 'arguments': self.data(2)}}
            ]
        if self.chance(15):
            message['name'] = self.word()
        return message

    def data(self, depth):
        kind = self.random.randrange(8 if depth else 6)
        if kind == 0:
            return self.random.randrange(-3, 12)
        if kind == 1:
            return self.pick([0.5, -1.25, 1e16, 3.0, 1e-5])
        if kind == 2:
            return self.pick([True, False, None])
        if kind < 6:
            return self.word()
        if kind == 6:
            return [self.data(depth - 1) for _ in range(self.random.randrange(4))]
        return {self.pick('abcde') + self.pick(['', 'x', ' y']): self.data(depth - 1)
                for _ in range(self.random.randrange(4))}

    def variables(self):
        return {
            'messages': [self.message_value() for _ in range(self.random.randrange(1, 5))],
            'tools': self.pick([None, [self.data(3)]]),
            'add_generation_prompt': self.chance(50),
            'bos_token': '<s>', 's': self.word(), 'n': self.random.randrange(-2, 7),
            'k': self.random.randrange(4), 'flag': self.chance(50),
            'f': self.pick([0.5, 2.0, -3.75, 1e22]),
            'numbers': [self.random.randrange(-4, 9)
                        for _ in range(self.random.randrange(5))],
            'strings': [self.word() for _ in range(self.random.randrange(5))],
            'd': {key: self.data(1) for key in self.random.sample('abcxyz', 3)},
        }

    # Expressions

    def any(self, depth):
        if self.names.get('any') and self.chance(30):
            return self.name('any')
        return self.expression(
            self.pick(['str', 'int', 'bool', 'list', 'dict', 'float', 'message']), depth)

    def expression(self, kind, depth):
        if self.chance(1.2):
            return self.pick(['missing', 'none', 'd.nothing', 'true', "'1'", '[]', '{}',
                              'messages[0].content', 'messages[9]', 'namespace'])
        if depth <= 0:
            return self.leaf(kind)
        if self.chance(6):
            return f'({self.expression(kind, depth - 1)})'
        if self.chance(5):
            condition = self.expression('bool', depth - 1)
            tail = f' else {self.expression(kind, depth - 1)}' if self.chance(85) else ''
            return f'({self.expression(kind, depth - 1)} if {condition}{tail})'
        return getattr(self, kind)(depth - 1)

    def leaf(self, kind):
        if kind == 'str':
            if self.chance(50) or not self.names['str']:
                return self.quoted(self.word())
            return self.name('str')
        if kind == 'int':
            return self.pick([self.name('int'), str(self.random.randrange(10))])
        if kind == 'float':
            return self.pick([self.name('float'), '1.5', '0.25', '2e3'])
        if kind == 'bool':
            return self.pick([self.name('bool'), 'true', 'false', 'add_generation_prompt'])
        if kind == 'list':
            return self.pick([self.name('list'), "['b', 'a', 'C']", '[3, 1, 2]', '(1, 2)'])
        if kind == 'dict':
            return self.pick([self.name('dict'), "{'b': 1, 'a': 'x'}", '{}'])
        if kind == 'message':
            return self.pick(self.names['message'] + ['messages[0]', 'messages[-1]'])
        return self.name(kind)

    def str(self, d):
        e = self.expression
        return self.pick([
            lambda: self.leaf('str'),
            lambda: f"{e('str', d)} + {e('str', d)}",
            lambda: f"{e('str', d)} ~ {self.any(d)}",
            lambda: f"{e('message', d)}.role",
            lambda: f"{e('message', d)}['role']",
            lambda: f"{e('str', d)}|{self.str_filter(d)}",
            lambda: f"{e('str', d)}|{self.str_filter(d)}|{self.str_filter(d)}",
            lambda: f"{self.atom('str', d)}.{self.str_method(d)}",
            lambda: f"({self.name('str')} ~ {e('str', d)})[{self.slice(d)}]",
            lambda: f"{self.any(d)}|string",
            lambda: f"{self.any(d)}|tojson{self.json_arguments()}",
            lambda: f"{e('list', d)}|join({self.quoted(self.pick(['', ', ', '-']))})",
            lambda: f"{e('list', d)}|map('string')|join('/')",
            lambda: f"{self.atom('str', d)} * {e('int', 0)}",
            lambda: f"{self.format_call(d)}",
            lambda: f"{self.any(d)}|default({e('str', 0)}{self.pick(['', ', true'])})",
            lambda: f"{self.atom('str', d)}.split({self.pick(['', self.quoted(','), self.quoted(' ')])})[{self.pick(['0', '-1'])}]",
            lambda: self.macro_call(d) or self.leaf('str'),
        ])()

    def atom(self, kind, depth):
        text = self.expression(kind, depth)
        return text if text.isidentifier() else f'({text})'

    def slice(self, d):
        parts = [self.pick(['', str(self.random.randrange(-4, 6)), self.expression('int', 0)])
                 for _ in range(2)]
        step = self.pick(['', '', '', ':', ':-1', ':2'])
        return ':'.join(parts) + step

    def str_filter(self, d):
        e = self.expression
        return self.pick([
            lambda: 'trim', lambda: 'upper', lambda: 'lower', lambda: 'capitalize',
            lambda: 'title', lambda: f"trim({self.quoted(self.pick([' x', 'a', '<|']))})",
            lambda: f"replace({e('str', 0)}, {e('str', 0)}{self.pick(['', ', 1'])})",
            lambda: 'string', lambda: f"default({e('str', 0)})",
            lambda: f"indent{self.pick(['', '(2)', '(1, true)', '(2, blank=true)', '(first=true)'])}",
            lambda: f"truncate({self.random.randrange(3, 12)}{self.pick(['', ', true', ', false, `..`, 0'])})",
            lambda: f"center({self.random.randrange(12)})", lambda: 'reverse',
            lambda: 'tojson',
        ])()

    def str_method(self, d):
        e = self.expression
        return self.pick([
            lambda: 'strip()', lambda: 'lstrip()', lambda: 'rstrip()',
            lambda: f"strip({e('str', 0)})", lambda: 'upper()', lambda: 'lower()',
            lambda: 'title()', lambda: 'capitalize()', lambda: 'swapcase()',
            lambda: f"replace({e('str', 0)}, {e('str', 0)})",
            lambda: f"removeprefix({e('str', 0)})", lambda: f"removesuffix({e('str', 0)})",
            lambda: f"join({e('list', d)}|map('string'))",
            lambda: f"ljust({self.random.randrange(9)})",
            lambda: f"rjust({self.random.randrange(9)}, '.')",
            lambda: f"center({self.random.randrange(9)})",
            lambda: f"zfill({self.random.randrange(9)})",
        ])()

    def json_arguments(self):
        return self.pick(['', '', '', '(indent=2)', '(indent=4)', '(ensure_ascii=true)',
                          "(separators=(',', ':'))", '(sort_keys=true)',
                          "(indent=1, separators=(',', ': '))"])

    def format_call(self, d):
        e = self.expression
        return self.pick([
            lambda: f"'%s|%d' % ({e('str', d)}, {e('int', d)})",
            lambda: f"'%5s|%-4s|' % ({e('str', 0)}, {e('int', 0)})",
            lambda: f"'%05.2f %x' % ({e('float', d)}, {e('int', 0)})",
            lambda: f"'%(b)s!' % {e('dict', 0)}",
            lambda: f"'%s' % {self.any(d)}",
            lambda: f"'%s and %r'|format({self.any(d)}, {self.any(d)})",
            lambda: f"'{{}} {{}}'.format({e('str', d)}, {e('int', d)})",
            lambda: f"'{{0:>6}}{{x:^7}}'.format({e('str', 0)}, x={e('str', 0)})",
            lambda: f"'{{:+d}} {{:,}} {{:.3f}}'.format({e('int', 0)}, {e('int', 0)} * 12345, {e('float', 0)})",
        ])()

    def int(self, d):
        e = self.expression
        return self.pick([
            lambda: self.leaf('int'), lambda: self.leaf('int'),
            lambda: f"{e('int', d)} {self.pick('+-*')} {e('int', d)}",
            lambda: f"{e('int', d)} {self.pick(['//', '%'])} {self.random.randrange(1, 5)}",
            lambda: f"{e('list', d)}|length", lambda: f"{e('str', d)}|length",
            lambda: f"{e('dict', d)}|count", lambda: f"{e('str', d)}|int({self.pick(['', '-1'])})",
            lambda: f"{e('float', d)}|int", lambda: f"-{self.atom('int', d)}",
            lambda: f"{e('int', d)}|abs",
            lambda: f"{self.atom('str', d)}.find({e('str', 0)})",
            lambda: f"{self.atom('str', d)}.count({e('str', 0)})",
            lambda: f"{e('str', d)}|wordcount", lambda: "numbers|sum",
            lambda: f"numbers|{self.pick(['min', 'max', 'first', 'last'])}",
            lambda: f"{self.atom('int', 0)} ** {self.random.randrange(3)}",
            lambda: self.pick(['loop.index', 'loop.index0', 'loop.length', 'loop.revindex',
                               'loop.depth'] if self.loops else ['k']),
        ])()

    def float(self, d):
        e = self.expression
        return self.pick([
            lambda: self.leaf('float'),
            lambda: f"{e('float', d)} {self.pick('+-*')} {e('int', d)}",
            lambda: f"{e('int', d)} / {self.random.randrange(1, 5)}",
            lambda: f"{e('float', d)}|round{self.pick(['', '(1)', '(2)', '(0, `floor`)', '(1, `ceil`)'])}",
            lambda: f"{e('str', d)}|float",
        ])()

    def bool(self, d):
        e = self.expression
        return self.pick([
            lambda: self.leaf('bool'),
            lambda: f"{e('str', d)} {self.pick(['==', '!=', '<', '>=', 'in', 'not in'])} {e('str', d)}",
            lambda: f"{e('int', d)} {self.pick(['==', '!=', '<', '>', '<=', '>='])} {e('int', d)}",
            lambda: f"{e('str', 0)} in {e('list', d)}",
            lambda: f"{e('str', 0)} in {e('dict', d)}",
            lambda: f"not {self.atom('bool', d)}",
            lambda: f"({e('bool', d)} {self.pick(['and', 'or'])} {e('bool', d)})",
            lambda: f"{self.any(d)} is {self.pick(['', 'not '])}{self.pick(['defined', 'none', 'string', 'mapping', 'sequence', 'iterable', 'number', 'boolean', 'integer', 'float', 'true', 'false', 'undefined', 'callable'])}",
            lambda: f"{e('int', d)} is {self.pick(['odd', 'even', 'divisibleby 3', 'eq 2', 'lt(3)', 'in [1, 2]'])}",
            lambda: f"{e('str', d)} is {self.pick(['lower', 'upper', 'in strings'])}",
            lambda: f"{self.atom('str', d)}.{self.pick(['startswith', 'endswith'])}({e('str', 0)})",
            lambda: f"{self.atom('str', d)}.{self.pick(['isdigit', 'isalpha', 'isalnum', 'isupper', 'islower', 'isspace'])}()",
            lambda: f"{self.pick(['a', 'x', 'tools', 'tool_calls'])} is defined",
            lambda: f"{e('message', d)}.{self.pick(['tool_calls', 'name', 'content'])} is {self.pick(['defined', 'none', 'string', 'mapping'])}",
            lambda: self.pick(['loop.first', 'loop.last', 'loop.previtem is defined',
                               'loop.changed(n)', 'loop.index0 % 2 == 0']
                              if self.loops else ['flag']),
            lambda: f"{e('list', d)} == {e('list', d)}",
        ])()

    def list(self, d):
        e = self.expression
        return self.pick([
            lambda: self.leaf('list'), lambda: self.leaf('list'),
            lambda: f"[{', '.join(self.any(d) for _ in range(self.random.randrange(4)))}]",
            lambda: f"{self.name('list')}[{self.slice(d)}]",
            lambda: f"{e('list', d)}|list + {e('list', d)}|list",
            lambda: f"{e('list', d)}|{self.list_filter(d)}|list",
            lambda: f"{e('list', d)}|{self.list_filter(d)}|{self.list_filter(d)}|list",
            lambda: f"{self.atom('str', d)}.split({self.pick(['', self.quoted(','), self.quoted(' ') + ', 1'])})",
            lambda: f"{self.atom('str', d)}.{self.pick(['splitlines()', 'rsplit(none, 1)', 'partition(` `)', 'rsplit(`a`, 1)'])}",
            lambda: f"range({self.random.randrange(5)})|list",
            lambda: f"{self.atom('dict', d)}.{self.pick(['keys', 'values', 'items'])}()|list",
            lambda: f"{e('dict', d)}|dictsort{self.pick(['', '(true)', '(reverse=true)'])}",
            lambda: f"{e('dict', d)}|items|list",
            lambda: f"messages|map(attribute='{self.pick(['role', 'content', 'name', 'tool_calls.0.function.name'])}'{self.pick(['', ', default=`-`'])})|list",
            lambda: f"messages|{self.pick(['selectattr', 'rejectattr'])}('role', '{self.pick(['==', 'equalto', 'ne', 'in'])}', {self.pick(['`user`', '`tool`', '[`user`, `system`]'])})|map(attribute='role')|list",
            lambda: f"messages|{self.pick(['selectattr', 'rejectattr'])}('{self.pick(['tool_calls', 'name'])}'{self.pick(['', ', `defined`', ', `none`'])})|map(attribute='role')|list",
            lambda: f"messages|groupby('role')|map('first')|list",
            lambda: f"messages|sort(attribute='role')|map(attribute='role')|list",
        ])()

    def list_filter(self, d):
        return self.pick([
            "map('string')", "map('upper')", "map('trim')", "map('length')", 'reverse', 'list',
            'sort', "sort(reverse=true)", "sort(case_sensitive=true)", 'unique',
            "select('string')", "reject('string')", "select('number')", "select", "reject",
            "select('defined')", "select('in', ['a', 1, 'user'])", 'batch(2)', "batch(2, '-')",
            'slice(2)', "map('replace', 'a', 'b')", "select('ne', 1)", "map('tojson')",
            "map('default', 'x')", "select('gt', 1)", "map('int')",
        ])

    def dict(self, d):
        e = self.expression
        return self.pick([
            lambda: self.leaf('dict'),
            lambda: '{' + ', '.join(f"{self.quoted(self.pick('abcd'))}: {self.any(d)}"
                                    for _ in range(self.random.randrange(3))) + '}',
            lambda: f"dict({self.pick(['a', 'b'])}={self.any(d)})",
            lambda: self.leaf('message'),
        ])()

    def message(self, d):
        return self.leaf('message')

    def macro_call(self, d):
        if not self.names['macro']:
            return None
        name, count = self.pick(self.names['macro'])
        arguments = [self.any(d) for _ in range(self.random.randrange(count + 1))]
        if self.chance(3):
            arguments.append('1')
        if self.chance(20 if len(arguments) < count else 3):
            arguments.append(f"p{max(count - 1, 0)}={self.any(d)}")
        return f"{name}({', '.join(arguments)})"

    # Statements

    def open(self):
        return '{%' + self.pick(['', '', '', '-', '-', '+']) + self.pick([' ', ' ', '', '\n'])

    def close(self):
        return self.pick([' ', ' ', '', '\n']) + self.pick(['', '', '', '-', '-', '+']) + '%}'

    def tag(self, text):
        return self.open() + text + self.close()

    def output(self, text):
        return ('{{' + self.pick(['', '', '', '-']) + self.pick([' ', ' ', '', '\n']) + text
                + self.pick([' ', ' ', '', '\n']) + self.pick(['', '', '', '-']) + '}}')

    def body(self, depth, in_function=False):
        saved = {kind: list(names) for kind, names in self.names.items()}
        loops = self.loops
        if in_function:
            self.loops = 0
        out = ''.join(self.statement(depth) for _ in range(self.random.randrange(1, 4)))
        self.names = saved
        self.loops = loops
        return out

    def new(self, kind):
        self.fresh += 1
        name = f'v{self.fresh}'
        if self.chance(25):
            name = self.pick(['s', 'n', 'x', 'd', 'flag'])
        if kind in self.names:
            self.names[kind] = self.names[kind] + [name]
        return name

    def statement(self, depth):
        kinds = ['text', 'text', 'output', 'output', 'output', 'set', 'comment']
        if depth > 0:
            kinds += ['if', 'if', 'for', 'for', 'messages', 'macro', 'call', 'filter',
                      'set_block', 'with', 'raw', 'space', 'generation', 'recursive', 'unpack']
        if self.loops:
            kinds += ['control']
        return getattr(self, 'do_' + self.pick(kinds))(depth - 1)

    def do_text(self, depth):
        return self.pick(TEXTS)

    def do_output(self, depth):
        kind = self.pick(['str', 'str', 'str', 'int', 'bool', 'list', 'float', 'dict'])
        # Python's own type for safe texts is not built: they are only written.
        if self.chance(5):
            return self.output(f"({self.expression(kind, 3)})|{self.pick(['safe', 'e'])}")
        return self.output(self.expression(kind, 3))

    def do_set(self, depth):
        kind = self.pick(['str', 'int', 'bool', 'list', 'dict', 'float'])
        value = self.expression(kind, 3)
        return self.tag(f'set {self.new(kind)} = {value}')

    def do_comment(self, depth):
        return '{#' + self.pick(['', '-', ' ']) + ' note {{ ' + self.pick(['', '-']) + '#}'

    def do_if(self, depth):
        out = self.tag('if ' + self.expression('bool', 3)) + self.body(depth)
        for _ in range(self.pick([0, 0, 1])):
            out += self.tag('elif ' + self.expression('bool', 2)) + self.body(depth)
        if self.chance(50):
            out += self.tag('else') + self.body(depth)
        return out + self.tag('endif')

    def loop(self, head, kind, name, depth):
        saved = {key: list(names) for key, names in self.names.items()}
        if kind in self.names:
            self.names[kind] = self.names[kind] + [name]
        self.loops += 1
        out = self.tag(head) + self.body(depth)
        self.loops -= 1
        self.names = saved
        if self.chance(25):
            out += self.tag('else') + self.body(depth)
        return out + self.tag('endfor')

    def do_for(self, depth):
        items = self.pick([
            lambda: self.expression('list', 2),
            lambda: f'range({self.random.randrange(5)})',
            lambda: f"{self.atom('dict', 1)}",
            lambda: f"{self.expression('list', 1)}|{self.list_filter(1)}",
            lambda: self.expression('str', 1),
        ])()
        name = self.new('any')
        condition = ''
        if self.chance(20):
            condition = f" if {name}|string|length > {self.random.randrange(3)}"
        return self.loop(f'for {name} in {items}{condition}', 'any', name, depth)

    def do_messages(self, depth):
        name = self.pick(['message', 'm'])
        condition = self.pick(['', '', f" if {name}.role != 'tool'", f" if {name}['content']"])
        items = self.pick(['messages', 'messages', 'messages[1:]', 'messages|reverse'])
        return self.loop(f'for {name} in {items}{condition}', 'message', name, depth)

    def do_unpack(self, depth):
        head = self.pick(['for key, value in d.items()', 'for key, value in d|dictsort',
                          'for (key, value) in d|items', 'for key, value in [(1, 2), [3, 4]]',
                          "for key, value in messages|groupby('role')",
                          'for key, value in numbers|batch(2)'])
        return self.loop(head, 'any', 'key', depth)

    def do_recursive(self, depth):
        tree = self.pick(["[{'n': 1, 'c': [{'n': 2, 'c': []}]}, {'n': 3, 'c': []}]",
                          "[{'n': 'a', 'c': [{'n': 'b', 'c': [{'n': 'c', 'c': []}]}]}]"])
        return (self.tag(f'for node in {tree} recursive') + self.output('node.n')
                + self.output(self.pick(['loop.depth', 'loop.index', 'loop.depth0']))
                + self.pick(TEXTS)
                + self.output(self.pick(['loop(node.c)', "'(' ~ loop(node.c) ~ ')'",
                                         'loop(node.c) if node.c']))
                + self.tag('endfor'))

    def do_macro(self, depth):
        self.fresh += 1
        name = f'm{self.fresh}'
        count = self.random.randrange(3)
        parameters = [f'p{i}' for i in range(count)]
        heads = [p + (f'={self.any(1)}' if i == count - 1 and self.chance(60) else '')
                 for i, p in enumerate(parameters)]
        saved = {kind: list(names) for kind, names in self.names.items()}
        self.names['any'] = parameters
        body = self.body(depth, in_function=True)
        body += ''.join(self.output(p) for p in parameters)
        if self.chance(6):
            body += self.output(self.pick(['caller()', 'caller(1)', 'varargs|length',
                                           'kwargs|length', 'caller is defined']))
        self.names = saved
        out = self.tag(f'macro {name}({", ".join(heads)})') + body + self.tag('endmacro')
        self.names['macro'] = self.names['macro'] + [(name, count)]
        return out + (self.output(self.macro_call(1)) if self.chance(70) else '')

    def do_call(self, depth):
        self.fresh += 1
        name = f'c{self.fresh}'
        arity = self.random.randrange(2)
        argument = self.any(1) if arity else ''
        out = (self.tag(f'macro {name}(q)') + self.output('q') + self.pick(TEXTS)
               + self.output(f'caller({argument})') + self.tag('endmacro'))
        head = f'call({"z" if arity else ""})' if arity or self.chance(50) else 'call'
        out += self.tag(f'{head} {name}({self.any(1)})')
        out += self.body(depth, in_function=True) + (self.output('z') if arity else '')
        return out + self.tag('endcall')

    def do_filter(self, depth):
        return (self.tag('filter ' + self.str_filter(1)) + self.body(depth)
                + self.tag('endfilter'))

    def do_set_block(self, depth):
        filters = self.pick(['', '', ' | trim', ' | upper | replace("A", "b")'])
        body = self.body(depth)
        return self.tag(f"set {self.new('str')}{filters}") + body + self.tag('endset')

    def do_with(self, depth):
        value = self.expression('str', 2)
        saved = {kind: list(names) for kind, names in self.names.items()}
        self.names['str'] = self.names['str'] + ['w']
        out = self.tag(f'with w = {value}, u = n') + self.body(depth) + self.output('w ~ u')
        self.names = saved
        return out + self.tag('endwith')

    def do_raw(self, depth):
        return (self.tag('raw').replace('+', '') + self.pick(TEXTS)
                + self.pick(['{{ x }}', '{% if %}', '{#', '', ' \n '])
                + self.tag('endraw'))

    def do_generation(self, depth):
        return self.tag('generation') + self.body(depth, in_function=True) + self.tag('endgeneration')

    def do_space(self, depth):
        self.fresh += 1
        name = f'ns{self.fresh}'
        kind = self.pick(['str', 'int', 'list'])
        step = {'str': f'{name}.v ~ {self.expression("str", 1)}',
                'int': f'{name}.v + {self.expression("int", 1)}',
                'list': f'{name}.v + [{self.any(1)}]'}[kind]
        start = {'str': "''", 'int': '0', 'list': '[]'}[kind]
        return (self.tag(f'set {name} = namespace(v={start})')
                + self.tag('for i in range(3)') + self.tag(f'set {name}.v = {step}')
                + self.tag('endfor') + self.output(f'{name}.v'))

    def do_control(self, depth):
        return (self.tag('if ' + self.expression('bool', 2))
                + self.tag(self.pick(['break', 'continue'])) + self.tag('endif'))


def case(seed):
    """The template and variables of a seed."""
    generator = Generator(seed)
    variables = generator.variables()
    # Jinja loses sight of a variable in the inner blocks of a block that sets it,
    # unless a block around it has read it: so the templates read all first.
    source = "{{ '' if s or n or x or d or flag }}"
    source += ''.join(generator.statement(3)
                     for _ in range(generator.random.randrange(1, 5)))
    # Stands for a quote where the code above has no room for one.
    source = source.replace('`', '"')
    return {'seed': seed, 'template': source, 'variables': variables}


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    made = environment()
    for i in range(count):
        row = case(seed * 1000003 + i)
        row.update(outcome(made, row['template'], row['variables']))
        print(json.dumps(row, separators=(',', ':')))


if __name__ == '__main__':
    main()
