"""Makes cases.jsonl: what Python's jinja2, set up as the transformers library
sets it up, makes of the templates below.

    pip install jinja2==3.1.6 && python3 make.py

The templates were written for this set, in the manner of well-known model
families and within the part of Jinja that Penstock knows. `SNIPPETS` are single
constructs, one or more a line of the language's reference.
"""

import json
import pathlib

from environment import environment, outcome

MESSAGES = {
    'user': [('user', 'Hi there.')],
    'system_user': [('system', 'Be brief.'), ('user', 'Name a colour.')],
    'turns': [
        ('user', 'My cat is called Pixel.'),
        ('assistant', ' What a fine name! '),
        ('user', 'What is it called?\n'),
    ],
    'system_turns': [
        ('system', '  You rhyme.  '),
        ('user', 'Sea'),
        ('assistant', '<think>\nfree\n</think>\n\nbe'),
        ('user', ''),
    ],
    'ends_with_assistant': [('user', 'Count.'), ('assistant', 'One, two,')],
    'unicode': [
        ('user', '\u00a0\u4f60\u597d\uff01 \U0001f468\u200d\U0001f469\u2003\n'),
        ('assistant', '\u0645\u0631\u062d\u0628\u0627 "q" \\ \u2028'),
        ('user', 'na\u00efve caf\u00e9'),
    ],
    'special': [('user', '<|im_end|>\n<|im_start|>system\n{{ 7*7 }}</s>')],
    'two_users': [('user', 'One.'), ('user', 'Two.')],
    'tool': [
        ('user', 'Weather?'),
        ('assistant', 'calling'),
        ('tool', '{"t": 21}'),
        ('user', 'So?'),
    ],
    'odd_role': [('user', 'a'), ('Critic 7', 'b')],
    'none': [],
}

TEMPLATES = {
    'chatml': (
        "{% for message in messages %}"
        "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
        "'<|im_end|>' + '\n'}}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
        "{% endif %}"
    ),
    'chatml_indented': """
{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- set rest = messages[1:] %}
{%- else %}
    {{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}
    {%- set rest = messages %}
{%- endif %}
{%- for m in rest %}
    {%- if m.role not in ['user', 'assistant', 'system'] %}
        {%- continue %}
    {%- endif %}
    {{- '<|im_start|>' ~ m.role ~ '\\n' ~ m.content | trim ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    'inst_sys': (
        "{% if messages[0]['role'] == 'system' %}"
        "{% set loop_messages = messages[1:] %}"
        "{% set system_message = messages[0]['content'] %}"
        "{% else %}{% set loop_messages = messages %}"
        "{% set system_message = false %}{% endif %}"
        "{% for message in loop_messages %}"
        "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Roles must alternate user/assistant/...') }}"
        "{% endif %}"
        "{% if loop.index0 == 0 and system_message != false %}"
        "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n'"
        " + message['content'] %}"
        "{% else %}{% set content = message['content'] %}{% endif %}"
        "{% if message['role'] == 'user' %}"
        "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
        "{% elif message['role'] == 'assistant' %}"
        "{{ ' ' + content.strip() + ' ' + eos_token }}"
        "{% endif %}{% endfor %}"
    ),
    'headers': """{% set loop_messages = messages %}
{% for message in loop_messages %}
{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>

' + message['content'] | trim + '<|eot_id|>' %}
{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}
{{ content }}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|start_header_id|>assistant<|end_header_id|>

' }}
{% endif %}
""",
    'headers_tools': """{{- bos_token }}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{#- Pull out the system message. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
    {%- for t in tools %}{{- t | tojson(indent=4) }}{%- endfor %}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- elif 'tool_calls' in message %}
        {{- raise_exception("no tool calls here") }}
    {%- else %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'
            + message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    'inst_plain': """{{ bos_token }}{% for message in messages -%}
{%- if message.role == 'user' -%}
  [INST] {{ message.content }} [/INST]
{%- elif message.role == 'assistant' -%}
  {{ message.content }}{{ eos_token }}
{%- elif message.role == 'system' and loop.first -%}
  [SYSTEM_PROMPT]{{ message.content }}[/SYSTEM_PROMPT]
{%- else -%}
  {{ raise_exception('Only user and assistant roles are supported, not '
     ~ message.role ~ '!') }}
{%- endif -%}
{%- endfor %}""",
    'inst_last': """{%- set user_messages = namespace(last=-1, count=0) %}
{%- for message in messages %}
  {%- if message.role == 'user' %}
    {%- set user_messages.last = loop.index0 %}
    {%- set user_messages.count = user_messages.count + 1 %}
  {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in messages if message.role != 'system' %}
  {%- if loop.last %}{{- '[LAST ' ~ user_messages.count ~ ']' }}{% endif %}
  {{- '[' ~ message.role|upper ~ ']' ~ message.content ~ ' ' }}
{%- else %}
  {{- 'nobody spoke, last ' ~ user_messages.last }}
{%- endfor %}
""",
    'turns': (
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
        "{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for message in messages %}"
        "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
        "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
        "{% else %}{% set role = message['role'] %}{% endif %}"
        "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + "
        "'<end_of_turn>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
    ),
    'turns_prefix': """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- set role = "model" if message['role'] == 'assistant'
        else message['role'] -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {{ item['text'] | trim }}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
""",
    'role_tags': (
        "{% for message in messages %}"
        "{% if message['role'] == 'system' and message['content'] %}"
        "{{'<|system|>\n' + message['content'] + '<|end|>\n'}}"
        "{% elif message['role'] in ('user', 'assistant') %}"
        "{{'<|' ~ message['role'] ~ '|>\n' ~ message['content'] ~ '<|end|>\n'}}"
        "{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}"
        "{% else %}{{ eos_token }}{% endif %}"
    ),
    'role_lines': """{% for message in messages %}
    {% if message['role'] == 'user' %}
        {{ '<|user|>
' + message['content'] + eos_token }}
    {% elif message['role'] == 'system' %}
        {{ '<|system|>
' + message['content'] + eos_token }}
    {% elif message['role'] == 'assistant' %}
        {{ '<|assistant|>
'  + message['content'] + eos_token }}
    {% endif %}
    {% if loop.last and add_generation_prompt %}
        {{ '<|assistant|>' }}
    {% endif %}
{% endfor %}
""",
    'names': """{% if messages[0].role == 'system' -%}
{{ messages[0].content }} {% else -%}
A chat between a curious user and an assistant. {% endif -%}
{% for m in messages -%}
{% if m.role == 'user' %}USER: {{ m.content|trim }} {% endif -%}
{% if m.role == 'assistant' %}ASSISTANT: {{ m.content|trim }}{{ eos_token }}
{% endif -%}
{% endfor -%}
{% if add_generation_prompt %}ASSISTANT:{% endif %}""",
    'sections': """{% for message in messages %}
{% if message['role'] == 'system' %}
{{ message['content'] }}

{% elif message['role'] == 'user' %}
### Instruction:
{{ message['content'] -}}
{% if not loop.last %}


{% endif %}
{% elif message['role'] == 'assistant' %}
### Response:
{{ message['content'] }}{{ eos_token }}
{% if not loop.last %}

{% endif %}
{% endif %}
{% endfor %}
{% if add_generation_prompt and messages|length
      and messages[-1]['role'] != 'assistant' %}

### Response:
{% endif %}""",
    'thinking': """{% if not add_generation_prompt is defined %}
{% set add_generation_prompt = false %}{% endif %}
{%- set ns = namespace(is_first=false, is_tool=false, system_prompt='') -%}
{%- for message in messages %}{%- if message['role'] == 'system' %}
{%- set ns.system_prompt = message['content'] %}{%- endif %}{%- endfor %}
{{- bos_token }}{{ ns.system_prompt }}
{%- for message in messages %}
{%- if message['role'] == 'user' %}
{%- set ns.is_tool = false -%}
{{'<|User|>' + message['content']}}
{%- endif %}
{%- if message['role'] == 'assistant' and message['content'] is not none %}
{%- if ns.is_tool %}
{{'<|tool_outputs_end|>' + message['content'] + '<|end_of_sentence|>'}}
{%- set ns.is_tool = false -%}
{%- else %}
{%- set content = message['content'] -%}
{%- if '</think>' in content %}
{%- set content = content.split('</think>')[-1] -%}
{%- endif %}
{{'<|Assistant|>' + content + '<|end_of_sentence|>'}}
{%- endif %}
{%- endif %}
{%- if message['role'] == 'tool' %}
{%- set ns.is_tool = true -%}
{%- if ns.is_first %}
{{'<|tool_outputs_begin|>' + message['content']}}
{%- set ns.is_first = false %}
{%- else %}
{{'\\n' + message['content']}}
{%- endif %}
{%- endif %}
{%- endfor -%}
{% if ns.is_tool %}{{'<|tool_outputs_end|>'}}{% endif %}
{% if add_generation_prompt and not ns.is_tool %}
{{'<|Assistant|><think>\\n'}}{% endif %}""",
    'reversed': """{%- set ns = namespace(multi_step=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string
        and not(message.content.startswith('<tool_response>')
                and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if '</think>' in content %}
            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or reasoning_content) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}{{- content }}{{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    'turn_tokens': (
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
        "{% set system_message = messages[0]['content'] %}"
        "{% elif false == true %}{% set system_message = 'default' %}"
        "{% else %}{% set system_message = false %}{% endif %}"
        "{% if system_message != false %}"
        "{{ '<|START|><|SYSTEM|>' + system_message + '<|END|>' }}{% endif %}"
        "{% for message in messages %}{% set content = message['content'] %}"
        "{% if message['role'] == 'user' %}"
        "{{ '<|START|><|USER|>' + content.strip() + '<|END|>' }}"
        "{% elif message['role'] == 'assistant' %}"
        "{{ '<|START|><|BOT|>'  + content.strip() + '<|END|>' }}"
        "{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|START|><|BOT|>' }}{% endif %}"
    ),
    'role_markers': """{%- for message in messages %}
{{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' +
    message['content'] + '<|end_of_text|>
' }}
{%- if loop.last and add_generation_prompt %}
{{- '<|start_of_role|>assistant<|end_of_role|>' }}
{%- endif %}
{%- endfor %}""",
    'correct': (
        "{{ bos_token }}{% for message in messages %}"
        "{{ 'GPT4 Correct ' + (message['role'] | capitalize) + ': ' + "
        "message['content'] + '<|end_of_turn|>'}}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'GPT4 Correct Assistant:' }}"
        "{% endif %}"
    ),
    'hashes': """{% for message in messages %}{% if message['role'] == 'system' %}{% if message['content']%}{{'### System:
' + message['content']+'

'}}{% endif %}{% elif message['role'] == 'user' %}{{'### User:
' + message['content']+'

'}}{% elif message['role'] == 'assistant' %}{{'### Assistant:
'  + message['content']}}{% endif %}{% if loop.last and add_generation_prompt %}{{ '### Assistant:
' }}{% endif %}{% endfor %}""",
    'falls_back': """{% set roles = {'user': 'Human', 'assistant': 'Bot'} %}
{% for message in messages %}
  {% set name = roles.get(message.role, message.role|default('x')|trim) %}
  {{ name }}: {{ message.content|replace('\\n', ' ')|trim }}
  {%- if not loop.last %}; {% endif +%}
{% endfor %}
{{ 'Bot:' if add_generation_prompt else eos_token }}
""",
    'joined': """{% set parts = namespace(all=[]) %}
{% for m in messages %}
{% set parts.all = parts.all + [m.role|lower ~ '=' ~ m.content|tojson] %}
{% endfor %}
{{ parts.all|join('\\n') }} ({{ parts.all|length }})
{%- if add_generation_prompt %} ->{% endif %}

""",
    'blocks': """{% set header %}
  <{{ bos_token }}|{{ messages|length }}>
{% endset %}
{{ header|trim }}
{#- a comment
    over two lines -#}
{% for role, count in {'user': 0, 'assistant': 1}.items() %}
  {% for m in messages if m.role == role %}
    {% if loop.index > 2 %}{% break %}{% endif %}
{{ role }}{{ loop.index }}/{{ loop.length }}: {{ m.content[:5] }}|
  {% else %}
no {{ role }}
  {% endfor %}
{% endfor %}
""",
}

# One each: rendered without messages.
SNIPPETS = r"""
{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 1 / 2 }} {{ 4 / 2 }}
{{ 7.5 % -2 }} {{ -7.5 // 2 }} {{ 1.5 + 1 }} {{ 2.0 * 3 }} {{ 1e20 }} {{ 1e16 }} {{ 123456789012345680.0 }}
{{ 0.0001 }} {{ 0.00001 }} {{ 1e22 }} {{ 1.5e300 }} {{ 0.1 + 0.2 }} {{ 100.0 }} {{ -0.0 }}
{{ 1_000 }} {{ 00 }} {{ 1_0.5 }} {{ -1 }} {{ +1 }} {{ - -1 }} {{ not true }} {{ not not 1 }}
{{ true }} {{ false }} {{ none }} {{ True }} {{ None }} {{ undefined_name }}|
{{ true + 1 }} {{ -true }} {{ true == 1 }} {{ 1 == 1.0 }} {{ 'a' == none }} {{ none == none }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.5 ~ u }} {{ 'a' + 'b' ~ 'c' + 'd' }} {{ 'a' 'b' "c" }}
{{ 'a' < 'b' }} {{ 'a' < 'B' }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 <= 1.0 }} {{ 2 > 1 >= 1 }} {{ 'é' > 'z' }}
{{ 'a' in 'cat' }} {{ 'x' not in 'cat' }} {{ 1 in [1, 2] }} {{ 1.0 in (1, 2) }} {{ 'k' in {'k': 1} }} {{ 5 in {'k': 1} }} {{ 'a' in u }} {{ u in [1] }}
{{ 1 and 0 }} {{ 0 or 'x' }} {{ '' and 1 }}|{{ none or false }} {{ u or 'y' }} {{ not u }} {{ u == v }} {{ u != none }}
{{ 'y' if 1 else 'n' }} {{ 'y' if 0 else 'n' }} {{ 'y' if 0 }}| {{ 1 if 0 else 2 if 0 else 3 }}
{{ ('x' if false) is defined }} {{ [1,2][0] }} {{ [1,2][-1] }} {{ [1,2][5] }}| {{ 'abc'[1] }} {{ 'abc'[-1] }} {{ 'abc'[9] }}|
{{ [1,2,3][1:]|join(',') }} {{ [1,2,3][:-1]|join(',') }} {{ [1,2,3][::2]|join }} {{ [1,2,3][::-1]|join }} {{ [1,2,3][5:]|length }} {{ [1,2,3][-2:]|join }}
{{ 'héllo'[1:3] }} {{ 'héllo'[::-1] }} {{ 'abc'[-100:2] }} {{ 'abc'[2:0:-1] }} {{ 'abcdef'[4::-2] }} {{ 'abc'[none:none] }} {{ 'abc'[3:1] }}|
{{ {'a': 1}['a'] }} {{ {'a': 1}.a }} {{ {'a': {'b': 2}}.a.b }} {{ {'a': 1}.z }}| {{ {'a': 1}['z'] is defined }} {{ {'items': 1}['items'] }}
{{ [[1, 2], [3]][0][1] }} {{ ['a', 'b'].0 }} {{ (1, 2)[1] }} {{ ((1)) }} {{ ()|length }} {{ (1,)|length }} {{ [1,]|length }} {{ {'a':1,}|length }}
{{ [] == [] }} {{ [1, [2]] == [1, [2]] }} {{ (1, 2) == [1, 2] }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ [1] != [1.0] }} {{ {} == [] }}
{{ [1] + [2]|list == [1, 2] }} {{ ([1] + [2])|join('-') }} {{ ((1,) + (2,))|join('-') }}
{{ 'x' is defined }} {{ u is defined }} {{ u is undefined }} {{ u is not defined }} {{ not u is defined }} {{ none is none }} {{ u is none }}
{{ 'a' is string }} {{ 1 is string }} {{ 1 is number }} {{ true is number }} {{ 1.5 is float }} {{ 1 is integer }} {{ true is integer }} {{ true is boolean }} {{ 1 is boolean }}
{{ true is true }} {{ 1 is true }} {{ false is false }} {{ {} is mapping }} {{ [] is mapping }} {{ [] is sequence }} {{ 'a' is sequence }} {{ 1 is sequence }} {{ {} is iterable }} {{ 1 is iterable }} {{ u is iterable }} {{ u is sequence }}
{{ 4 is even }} {{ 4 is odd }} {{ -3 is odd }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 1 is eq 1 }} {{ 1 is ne 1 }} {{ 1 is lt 2 }} {{ 2 is ge(2) }} {{ 1 is in [1] }} {{ 'z' is not in 'abc' }} {{ 3 is gt 2 and 2 is le 2 }}
{{ raise_exception is callable }} {{ 1 is callable }} {{ namespace is defined }}
{{ '  a b '|trim }}| {{ 'xxaxx'|trim('x') }} {{ 'xyaxy'|trim('yx') }} {{ 5|trim }} {{ u|trim }}| {{ ''|trim }}|
{{ 'aBc'|upper }} {{ 'aBc'|lower }} {{ 'aBC d'|capitalize }} {{ 5|upper }} {{ ''|capitalize }}|
{{ 'héé'|length }} {{ [1,2]|length }} {{ {'a':1}|count }} {{ u|length }} {{ ''|length }} {{ (1,2,3)|length }}
{{ [1, 'a', none, true]|join(', ') }} {{ 'abc'|join('-') }} {{ {'a': 1, 'b': 2}|join('-') }} {{ []|join('x') }}| {{ [1]|join(5) }} {{ u|join }}| {{ [1,2]|join(d='+') }}
{{ u|default('x') }} {{ ''|default('x') }}| {{ ''|default('x', true) }} {{ none|default('z') }} {{ 0|d(5, boolean=true) }} {{ u|default }}| {{ u|default(default_value=3) }}
{{ [3,1]|first }} {{ 'abc'|last }} {{ []|first }}| {{ []|last is defined }} {{ {'k':1}|first }} {{ 'abc'|list|length }} {{ (1,2)|list == [1,2] }} {{ u|list|length }}
{{ 'a-b-c'|replace('-', '+') }} {{ 'aaa'|replace('a', 'bb', 2) }} {{ 'abc'|replace('x', 'y') }} {{ 5|string ~ 1 }} {{ 1.5|string|length }} {{ 'aXbX'|replace(old='X', new='') }}
{{ 'a"b\\c\n\t\u00e9\u0001'|tojson }} {{ [1, 1.5, true, none, 'x', [], {}, {'k': [1]}]|tojson }} {{ {'a': {'b': 1}}|tojson }} {{ (1,2)|tojson }} {{ 1e20|tojson }}
{{ {'a': [1, {'b': 2}], 'c': []}|tojson(indent=2) }} {{ []|tojson(indent=4) }} {{ [[1]]|tojson(indent=1) }} {{ 'x'|tojson(indent=2) }}
{{ ' a '.strip() }}| {{ ' a '.lstrip() }}| {{ ' a '.rstrip() }}| {{ 'xax'.strip('x') }} {{ 'ab'.upper() }} {{ 'AB'.lower() }} {{ 'aB'.capitalize() }} {{ 'a'.strip('') }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith('bc') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith(()) }} {{ 'abc'.startswith('') }}
{{ 'a,b,c'.split(',')|join('|') }} {{ 'a,b,c'.split(',', 1)|join('|') }} {{ ' a  b '.split()|join('|') }} {{ ' a  b  c '.split(none, 1)|join('|') }}| {{ ''.split(',')|length }} {{ ''.split()|length }} {{ 'a'.split('aa')|length }} {{ 'ab'.split(sep='b')|length }}
{{ '-'.join(['a', 'b']) }} {{ ''.join('abc') }} {{ 'a.b'.replace('.', '') }} {{ 'aaa'.replace('a', 'b', 1) }}
{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 2) }} {{ {'a': 1, 'b': 2}.keys()|join }} {{ {'a': 1, 'b': 2}.values()|join }} {{ {'a': 1}.items()|list|length }}
{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %} {% for a, b in [(1, 2), [3, 4]] %}{{ a + b }},{% endfor %}
{% for x in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}{{ loop.cycle('o', 'e') }};{% endfor %}
{% for x in [] %}a{% else %}empty{% endfor %} {% for x in u %}a{% else %}undefined{% endfor %} {% for c in 'hé' %}{{ c }},{% endfor %} {% for k in {'a': 1} %}{{ k }}{% endfor %}
{% for x in [1,2,3,4] if x is even %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% endfor %} {% for x in [1,2] if x > 5 %}{% else %}none{% endfor %}
{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %} {% for x in range(1, 8, 3) %}{{ x }}{% endfor %} {% for x in range(3, 0, -1) %}{{ x }}{% endfor %}
{% for x in [1,2] %}{% for y in [3,4] %}{{ loop.index }}{{ x }}{{ y }} {% endfor %}{{ loop.index }}{% endfor %} {{ loop is defined }}
{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = x + i %}{{ x }}{% endfor %}{{ x }} {% if true %}{% set x = 9 %}{% endif %}{{ x }}
{% for i in [1,2] %}{{ q }}{% set q = i %}{{ q }}{% endfor %}{{ q }}| {% set a, b = 1, 2 %}{{ a }}{{ b }} {% set t = 1, 2 %}{{ t|length }}
{% set ns = namespace(x=1, y='a') %}{% for i in [1,2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.z }}{{ ns['x'] }} {{ ns.z is defined }}
{% set b %}a{{ 1 }}{% set inner = 5 %}{% endset %}{{ b }}{{ inner }}|{{ b|length }} {% set e %}{% endset %}{{ e }}|
{% if 0 %}a{% elif '' %}b{% elif 1 %}c{% else %}d{% endif %} {% if none %}{% else %}e{% endif %} {% if [] or {} or 0.0 %}f{% endif %}|
{{ 'a\tb\\n\'\"\x41\u00e9\U0001F600\101\q' }} {{ "it's" }} {{ 'say "x"' }} {{ '\0'|length }} {{ 'a\
b' }}
a {%- if true -%} b {%- endif -%} c {{- ' d ' -}} e {#- gone -#} f
  {% if true %} x {% endif %}  y{# c #} z{{ ' ' }}
{%- for m in [1] +%} a {%+ endfor %} b {%+ if true -%} c {% endif %}
{{ '}}' }} {{ {'a': {'b': {}}}|length }} {{ '{% x %}' }} { { }} }} {% if '%}' %}ok{% endif %} {{ "{{" }} # {{ 1 }} #}
{{ u.x }}
{{ u.x is defined }}
{{ u[0] }}
{{ u[1:] }}
{{ u + 'a' }}
{{ u < 1 }}
{{ -u }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ none + 1 }}
{{ 'a' - 'b' }}
{{ 'a' < 1 }}
{{ none < 1 }}
{{ 5 in 'a5' }}
{{ 'a' in 5 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ none|length }}
{{ 5|length }}
{{ u|tojson }}
{{ 5|first }}
{% for x in 5 %}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [[1]] %}{% endfor %}
{% set a, b = [1, 2, 3] %}
{% set q.x = 1 %}
{% set q = 1 %}{% set q.x = 1 %}
{{ 'x'() }}
{{ (1)(2) }}
{{ raise_exception('words of ' ~ 'the template') }}
{{ raise_exception() }}
{{ range() }}
{{ range(1, 2, 0)|list }}
{{ 'abc'.startswith(1) }}
{{ 'a'.split('') }}
{{ 'a'.join([1]) }}
{{ [1,2][::0] }}
{{ 'a'|trim(1, 2) }}
{{ 'a'|replace('x') }}
{{ 'a' is divisibleby }}
{{ x is }}
{{ }}
{{ 1 +
{{ 1 + }}
{{ (1 }}
{{ [1, }}
{{ {'a' } }}
{{ {'a': } }}
{{ 1 2 }}
{{ a. }}
{{ a[] }}
{{ a[1:2:3:4] }}
{{ 'abc }}
{{ '\x4' }}
{{ '\u12' }}
{{ f(a=1, 2) }}
{{ a | }}
{{ 1 is defined is defined }}
{{ a ] }}
{{ ( ] }}
{% if %}{% endif %}
{% if 1 %}
{% if 1 %}{% else %}{% elif 2 %}{% endif %}
{% for x %}{% endfor %}
{% for in [1] %}{% endfor %}
{% for x in %}{% endfor %}
{% for x in [1] %}{% endif %}
{% for x in [1] %}
{% endfor %}
{% endif %}
{% else %}
{% set %}
{% set x %}
{% set x = %}
{% set 5 = 1 %}
{% break %}
{% %}
{% if 1
{# open
{{ a.5.b.'c' }}
{{ 5 if }}
{{ not }}
{{ @ }}
{{ ` }}
{{ $a }}
{{ 1 & 2 }}
""".strip('\n').split('\n')


def case(name, source, messages, add_generation_prompt):
    row = {
        'name': name,
        'template': source,
        'messages': [{'role': r, 'content': c} for r, c in messages],
        'add_generation_prompt': add_generation_prompt,
    }
    variables = {
        'messages': row['messages'],
        'add_generation_prompt': add_generation_prompt,
        'tools': None, 'documents': None, 'bos_token': '<s>', 'eos_token': '</s>',
    }
    row.update(outcome(environment(), source, variables))
    return row


def cases():
    for template, source in TEMPLATES.items():
        for name, messages in MESSAGES.items():
            generate = name not in ('ends_with_assistant', 'two_users')
            yield case(f'{template}/{name}', source, messages, generate)
    snippet = []
    for line in SNIPPETS:
        snippet.append(line)
        if line.endswith('\\'):
            continue
        source = '\n'.join(snippet)
        yield case(f'snippet/{source}', source, [], False)
        snippet = []


def main():
    out = pathlib.Path(__file__).with_name('cases.jsonl')
    with out.open('w', encoding='ascii') as file:
        for row in cases():
            file.write(json.dumps(row) + '\n')


if __name__ == '__main__':
    main()
