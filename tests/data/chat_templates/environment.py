"""jinja2 set up as the transformers library sets it up for chat templates."""

import datetime
import json

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

# What strftime_now tells.
NOW = datetime.datetime(2024, 7, 5, 9, 4, 3)


class Generation(Extension):
    """The tag `generation`, which writes its body."""

    tags = {'generation'}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(['name:endgeneration'], drop_needle=True)
        call = self.call_method('_written')
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _written(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent,
                      separators=separators, sort_keys=sort_keys)


class Namespace(jinja2.utils.Namespace):
    """Without names that begin with an underscore."""

    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if name.startswith('_'):
            raise jinja2.exceptions.SecurityError(name)


def environment():
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    made.filters['tojson'] = to_json
    made.globals['raise_exception'] = raise_exception
    made.globals['strftime_now'] = NOW.strftime
    made.globals['namespace'] = Namespace
    return made


def outcome(made, source, variables):
    """`text`, or `error` with what Python says."""
    try:
        return {'text': made.from_string(source).render(**variables)}
    except jinja2.exceptions.TemplateSyntaxError as error:
        return {'error': 'syntax', 'python_says': str(error)}
    except Exception as error:  # whatever Python raises is a refusal
        kind = 'raised' if type(error) is jinja2.exceptions.TemplateError else 'runtime'
        return {'error': kind, 'python_says': str(error)}
