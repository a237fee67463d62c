"""Makes families.json: what the transformers library makes of chats by templates
in the manner of well-known model families. See README.md.

The templates were written for this set: they have the shapes that such templates
have (turns, tools, dates, thinking, documents, parts), not their texts.
"""

import datetime
import json
import pathlib

from transformers.utils import chat_template_utils

from environment import NOW

T = {}

# Turns in brackets, the system's words within the first (Llama 2, Mistral 7B).
T['llama2'] = (
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}"
    "{% set system = '<<SYS>>\\n' + messages[0]['content']|trim + '\\n<</SYS>>\\n\\n' %}"
    "{% else %}{% set rest = messages %}{% set system = '' %}{% endif %}"
    "{% for message in rest %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Turns of user and assistant must alternate.') }}{% endif %}"
    "{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + (system if loop.first else '') + message['content'].strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}"
    "{{ ' ' + message['content'].strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)

T['mistral_v1'] = """{{- bos_token }}
{%- for message in messages %}
    {%- if message['role'] == 'user' %}
        {{- '[INST] ' + message['content'] + ' [/INST]' }}
    {%- elif message['role'] == 'assistant' %}
        {{- message['content'] + eos_token }}
    {%- else %}
        {{- raise_exception('There are users and assistants only, not ' + message['role'] + '.') }}
    {%- endif %}
{%- endfor %}"""

# Tools before the last user's turn, calls and results as JSON (Mistral v3).
T['mistral_v3'] = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, roles must alternate.") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Ids of calls have nine characters.") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {{- ", " if not loop.last else "]" + eos_token }}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token }}
    {%- elif message["role"] == "tool" or message["role"] == "tool_results" %}
        {%- set content = message.content.content if message.content is mapping else message.content %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("A role that is not known: " ~ message.role) }}
    {%- endif %}
{%- endfor %}
""".replace('\\\\n', '\\n')

T['mistral_nemo'] = """{%- set sys = messages[0].content if messages[0].role == 'system' else '' -%}
{%- set turns = messages[1:] if sys else messages -%}
{{- bos_token -}}
{%- for m in turns -%}
  {%- if m.role == 'user' -%}
    {%- if loop.last and tools -%}
      {{- '[AVAILABLE_TOOLS]' ~ tools|map(attribute='function')|list|tojson ~ '[/AVAILABLE_TOOLS]' -}}
    {%- endif -%}
    {{- '[INST]' ~ (sys ~ '\n\n' if loop.last and sys else '') ~ m.content ~ '[/INST]' -}}
  {%- elif m.tool_calls -%}
    {{- '[TOOL_CALLS]' ~ m.tool_calls|map(attribute='function')|list|tojson ~ eos_token -}}
  {%- elif m.role == 'tool' -%}
    {{- '[TOOL_RESULTS]' ~ {'content': m.content}|tojson ~ '[/TOOL_RESULTS]' -}}
  {%- else -%}
    {{- m.content ~ eos_token -}}
  {%- endif -%}
{%- endfor -%}
"""

T['mixtral'] = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ ' [INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + message['content'] + eos_token}}"
    "{% else %}{{ raise_exception('Only user and assistant roles here!') }}{% endif %}{% endfor %}"
)

T['llama3'] = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}"
    "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'"
    "+ message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
    "{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)

# A date, tools in the system's or the user's turn, calls as JSON (Llama 3.1, 3.2).
T['llama3_2'] = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system's own words, or none. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {{- "These functions can be called; answer with JSON.\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}

{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("Tools need a first user message to stand in!") }}
    {%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\n' -}}
    {{- "Answer with a call of one of these functions, as JSON.\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One call at a time!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or (message.content is iterable and message.content is not string) %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

T['llama3_1'] = T['llama3_2'].replace('date_string is defined %}\n    {%- if strftime_now',
                                      'date_string is defined and true %}\n    {%- if strftime_now')

T['smollm2'] = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a small and helpful model<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# Modes by words of the system message, a date, generation blocks (SmolLM3).
T['smollm3'] = """{# ───── defaults ───── #}
{%- if enable_thinking is not defined -%}
{%- set enable_thinking = true -%}
{%- endif -%}
{# ───── reasoning mode ───── #}
{%- if enable_thinking -%}
  {%- set reasoning_mode = "/think" -%}
{%- else -%}
  {%- set reasoning_mode = "/no_think" -%}
{%- endif -%}
{{- "<|im_start|>system\\n" -}}
{%- if messages[0].role == "system" -%}
  {%- set system_message = messages[0].content -%}
  {%- if "/no_think" in system_message -%}
    {%- set reasoning_mode = "/no_think" -%}
  {%- elif "/think" in system_message -%}
    {%- set reasoning_mode = "/think" -%}
  {%- endif -%}
  {%- set custom = system_message.replace("/no_think", "").replace("/think", "").rstrip() -%}
{%- endif -%}
{%- set today = strftime_now("%d %B %Y") -%}
{{- "## Metadata\\n\\nToday Date: " ~ today ~ "\\nReasoning Mode: " + reasoning_mode + "\\n\\n" -}}
{{- "## Custom Instructions\\n\\n" }}{{ (custom if custom else "None.") + "\\n\\n" -}}
{%- if xml_tools or python_tools or tools -%}
  {{- "### Tools\\n\\n" -}}
  {%- if xml_tools or tools -%}
    {%- if tools -%}{%- set xml_tools = tools -%}{%- endif -%}
    {%- set ns = namespace(xml_tool_string="You may call these:\\n<tools>\\n") -%}
    {%- for tool in xml_tools[:] -%}
      {%- set ns.xml_tool_string = ns.xml_tool_string ~ (tool | string) ~ "\\n" -%}
    {%- endfor -%}
    {{- ns.xml_tool_string + "</tools>" }}
  {%- endif -%}
  {%- if python_tools -%}
    {{- "\\n" ~ python_tools|join("\\n") -}}
  {%- endif -%}
{%- endif -%}
{{- "<|im_end|>\\n" -}}
{# ───── main loop ───── #}
{%- for message in messages -%}
    {%- set content = message.content if message.content is string else "" -%}
    {%- if message.role == "user" -%}
        {{ "<|im_start|>" + message.role + "\\n" + content + "<|im_end|>\\n" }}
    {%- elif message.role == "assistant" -%}
        {% generation %}
        {%- if reasoning_mode == "/think" -%}
            {{ "<|im_start|>assistant\\n" + content.lstrip("\\n") + "<|im_end|>\\n" }}
        {%- else -%}
            {{ "<|im_start|>assistant\\n" + "<think>\\n\\n</think>\\n" + content.lstrip("\\n") + "<|im_end|>\\n" }}
        {%- endif -%}
        {% endgeneration %}
    {%- elif message.role == "tool" -%}
        {{ "<|im_start|>" + "user\\n" + content + "<|im_end|>\\n" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {%- if reasoning_mode == "/think" -%}
        {{ "<|im_start|>assistant\\n" }}
    {%- else -%}
        {{ "<|im_start|>assistant\\n" + "<think>\\n\\n</think>\\n" }}
    {%- endif -%}
{%- endif -%}
"""

T['zephyr'] = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

# Tools in XML, calls within it, results grouped in a user's turn (Qwen 2.5).
T['qwen2_5'] = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You help.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n\\nCall any of these, described within <tools></tools>:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nA call is written as:\\n<tool_call>\\n{\\"name\\": <name>, \\"arguments\\": <object>}\\n</tool_call><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

# As before, with thinking that is kept after the last question only (Qwen 3).
T['qwen3'] = T['qwen2_5'].split("{%- for message in messages %}\n    {%- if (message.role")[0] + """
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
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
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + content + '\\n</tool_response>' }}
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
{%- endif %}
"""

T['gemma2'] = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('There is no system role') }}{% endif %}"
    "{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
    "{% else %}{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)

# Content as a text or as parts (Gemma 3).
T['gemma3'] = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Turns alternate, beginning with the user's") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Content of no known kind") }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\n'}}
{%- endif -%}
"""

T['phi3'] = (
    "{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}"
    "{{'<|system|>\n' + message['content'] + '<|end|>\n'}}"
    "{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}"
    "{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}"
    "{% else %}{{ eos_token }}{% endif %}"
)

T['phi4'] = (
    "{% for message in messages %}{% if (message['role'] == 'system') %}"
    "{{'<|im_start|>system<|im_sep|>' + message['content'] + '<|im_end|>'}}"
    "{% elif (message['role'] == 'user') %}"
    "{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}"
    "{% elif (message['role'] == 'assistant') %}"
    "{{'<|im_start|>assistant<|im_sep|>'}}{% generation %}{{message['content'] + '<|im_end|>'}}{% endgeneration %}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}"
)

T['olmo2'] = """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|system|>
' + message['content'] + '
' }}{% elif message['role'] == 'user' %}{{ '<|user|>
' + message['content'] + '
' }}{% elif message['role'] == 'assistant' %}{% if not loop.last %}{{ '<|assistant|>
'  + message['content'] + eos_token + '
' }}{% else %}{{ '<|assistant|>
'  + message['content'] + eos_token }}{% endif %}{% endif %}{% if loop.last and add_generation_prompt %}{{ '<|assistant|>
' }}{% endif %}{% endfor %}"""

# Roles between markers; tools and documents; thinking as a variable (Granite 3).
T['granite3'] = """{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set system_message = "Knowledge Cutoff Date: April 2024.\nToday's Date: " + strftime_now('%B %d, %Y') + ".\nYou are an assistant." %}
    {%- if tools and documents %}
        {%- set system_message = system_message + " Use the tools and the documents." %}
    {%- elif tools %}
        {%- set system_message = system_message + " Use the tools." %}
    {%- elif documents %}
        {%- set system_message = system_message + " Use the documents." %}
    {%- elif thinking %}
        {%- set system_message = system_message + " Think first." %}
    {%- endif %}
    {%- if 'citations' in controls and documents %}
        {%- set system_message = system_message + ' Cite.' %}
    {%- endif %}
    {%- set loop_messages = messages %}
{%- endif %}
{{- '<|start_of_role|>system<|end_of_role|>' + system_message + '<|end_of_text|>\n' }}
{%- if tools %}
    {{- '<|start_of_role|>tools<|end_of_role|>' }}
    {{- tools | tojson(indent=4) }}
    {{- '<|end_of_text|>\n' }}
{%- endif %}
{%- if documents %}
    {{- '<|start_of_role|>documents<|end_of_role|>' }}
    {%- for document in documents %}
        {{- 'Document ' + loop.index0 | string + '\n' }}
        {{- document['text'] }}
        {%- if not loop.last %}
            {{- '\n\n'}}
        {%- endif%}
    {%- endfor %}
    {{- '<|end_of_text|>\n' }}
{%- endif %}
{%- for message in loop_messages %}
    {{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + (message['content'] or '') + '<|end_of_text|>\n' }}
    {%- if loop.last and add_generation_prompt %}
        {{- '<|start_of_role|>assistant' }}
            {%- if controls %}
                {{- ' ' + controls | tojson()}}
            {%- endif %}
        {{- '<|end_of_role|>' }}
    {%- endif %}
{%- endfor %}"""

T['deepseek_v2'] = (
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ 'User: ' + message['content'] + '\n\n' }}{% elif message['role'] == 'assistant' %}"
    "{{ 'Assistant: ' + message['content'] + eos_token }}{% elif message['role'] == 'system' %}"
    "{{ message['content'] + '\n\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)

# System words gathered first, calls and results tracked by flags (DeepSeek V3).
T['deepseek_v3'] = (
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"
    "{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}"
    "{%- for message in messages %}{%- if message['role'] == 'system' %}"
    "{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}"
    "{% set ns.is_first_sp = false %}{%- else %}"
    "{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}"
    "{%- endif %}{%- endfor %}{{bos_token}}{{ns.system_prompt}}"
    "{%- for message in messages %}"
    "{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + message['content']}}{%- endif %}"
    "{%- if message['role'] == 'assistant' and message['tool_calls'] %}{%- set ns.is_tool = false -%}"
    "{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}"
    "{{'<｜Assistant｜>' + (message['content'] or '') + '<｜tool▁calls▁begin｜>'}}{%- set ns.is_first = true -%}"
    "{%- else %}{{'\\n'}}{%- endif %}"
    "{{'<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + tool['function']['name'] + '\\n' + '```json' + '\\n'"
    " + tool['function']['arguments']|tojson + '\\n' + '```' + '<｜tool▁call▁end｜>'}}{%- endfor %}"
    "{{'<｜tool▁calls▁end｜>' + eos_token}}{%- endif %}"
    "{%- if message['role'] == 'assistant' and not message['tool_calls'] %}"
    "{%- if ns.is_tool %}{{'<｜tool▁outputs▁end｜>' + message['content'] + eos_token}}{%- set ns.is_tool = false -%}"
    "{%- else %}THINKS{%- endif %}{%- endif %}"
    "{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}"
    "{%- if ns.is_output_first %}{{'<｜tool▁outputs▁begin｜>'}}{%- set ns.is_output_first = false %}{%- else %}{{'\\n'}}{%- endif %}"
    "{{'<｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>'}}{%- endif %}{%- endfor -%}"
    "{% if ns.is_tool %}{{'<｜tool▁outputs▁end｜>'}}{% endif %}"
    "{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜>'}}END{% endif %}"
)
T['deepseek_r1'] = T['deepseek_v3'].replace(
    'THINKS',
    "{% set content = message['content'] %}{% if '</think>' in content %}"
    "{% set content = content.split('</think>')[-1] %}{% endif %}"
    "{{'<｜Assistant｜>' + content + eos_token}}").replace('END', "{{'<think>\\n'}}")
T['deepseek_v3'] = T['deepseek_v3'].replace(
    'THINKS', "{{'<｜Assistant｜>' + message['content'] + eos_token}}").replace('END', '')

T['chatml'] = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# Macros that turn JSON schemas into signatures (Command-R).
T['command_r'] = """{{ bos_token }}
{%- macro json_to_python_type(json_spec) %}
{%- set basic_type_map = {
    "string": "str",
    "number": "float",
    "integer": "int",
    "boolean": "bool"
} %}
{%- if basic_type_map[json_spec.type] is defined %}
    {{- basic_type_map[json_spec.type] }}
{%- elif json_spec.type == "array" %}
    {{- "List[" + json_to_python_type(json_spec['items']) + "]"}}
{%- elif json_spec.type == "object" %}
    {{- "Dict[str, " + json_to_python_type(json_spec.additionalProperties) + ']'}}
{%- elif json_spec.type is iterable and json_spec.type is not string %}
    {{- "Union[" }}
    {%- for t in json_spec.type %}
      {{- json_to_python_type({"type": t}) }}
      {%- if not loop.last %}
        {{- "," }}
    {%- endif %}
    {%- endfor %}
    {{- "]" }}
{%- else %}
    {{- "Any" }}
{%- endif %}
{%- endmacro %}
{%- macro signature(tools, indent=2) %}
{%- for tool in tools %}
    {%- if loop.index0 != 0 %}
        {{- '\\n\\n' }}
    {%- endif %}
    {{- '```python\\ndef ' + tool.function.name + '(' }}
    {%- for param_name, param_fields in tool.function.parameters.properties.items() %}
        {%- if loop.index0 != 0 %}
            {{- ', '}}
        {%- endif %}
        {{- param_name + ": " }}
        {%- if not param_name in tool.function.parameters.required %}
            {{- 'Optional[' + json_to_python_type(param_fields) + '] = None'}}
        {%- else %}
            {{- json_to_python_type(param_fields) }}
        {%- endif %}
    {%- endfor %}
    {{- ') -> List[Dict]:\\n' + (' ' * indent) + '\"\"\"'}}
    {{- tool.function.description|default('', true)|indent(indent) }}
    {{- '\"\"\"\\n' + (' ' * indent) + 'pass\\n```' }}
{%- endfor %}
{%- endmacro %}
{%- if messages[0]['role'] == 'system' %}
  {%- set loop_messages = messages[1:] %}
  {%- set system_message = messages[0]['content'] %}
{%- else %}
  {%- set loop_messages = messages %}
  {%- set system_message = 'You help.' %}
{%- endif %}
{{- '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>' + system_message }}
{%- if tools %}
  {{- '\\n\\n## Available Tools\\n' + signature(tools, indent=4) }}
{%- endif %}
{{- '<|END_OF_TURN_TOKEN|>' }}
{%- for message in loop_messages %}
  {%- set content = message['content'] %}
  {%- if message.role == 'user' %}
    {{- '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' + content.strip() + '<|END_OF_TURN_TOKEN|>' }}
  {%- elif message.role == 'assistant' %}
    {{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}
    {%- if message.tool_calls is defined and message.tool_calls|length > 0 %}
      {{- 'Action: ```json\\n[\\n' }}
      {%- for tool_call in message.tool_calls %}
        {{- '{\\n"tool_name": "' + tool_call.function.name + '",\\n"parameters": ' }}
        {{- tool_call.function.arguments|tojson(indent=2)|indent(4) + '\\n}' }}
        {%- if not loop.last %}{{- ',' }}{%- endif %}
      {%- endfor %}
      {{- '\\n]```' }}
    {%- else %}
      {{- content.strip() }}
    {%- endif %}
    {{- '<|END_OF_TURN_TOKEN|>' }}
  {%- elif message.role == 'tool' %}
    {{- '<results>\\n' + content|string + '\\n</results>' }}
  {%- endif %}
{%- endfor %}
{%- if documents %}
  {%- for document in documents %}
    {{- '\\nDocument: ' ~ loop.index0 ~ '\\n' }}
    {%- for key, value in document|dictsort %}
      {{- key ~ ': ' ~ value ~ '\\n' }}
    {%- endfor %}
  {%- endfor %}
{%- endif %}
{%- if add_generation_prompt %}
  {{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}
{%- endif %}
"""

PARTS = ['gemma3']

TOOLS = [
    {'type': 'function', 'function': {
        'name': 'weather', 'description': 'Tells the weather.\nOf a place.',
        'parameters': {'type': 'object', 'properties': {
            'place': {'type': 'string', 'description': 'where'},
            'days': {'type': 'array', 'items': {'type': 'integer'}},
            'unit': {'type': ['string', 'null'], 'enum': ['C', 'F', None]}},
            'required': ['place']}}},
    {'type': 'function', 'function': {
        'name': 'sum', 'description': '',
        'parameters': {'type': 'object', 'properties': {
            'values': {'type': 'array', 'items': {'type': 'number'}}}, 'required': []}}},
]


def call(name, arguments, id='abcdefghi'):
    return {'type': 'function', 'id': id, 'function': {'name': name, 'arguments': arguments}}


USER = {'role': 'user', 'content': ' What is new? '}
SYSTEM = {'role': 'system', 'content': 'Be brief.\nAlways.'}
CALLING = [
    {'role': 'user', 'content': 'Weather in Zürich?'},
    {'role': 'assistant', 'content': None,
     'tool_calls': [call('weather', {'place': 'Zürich', 'days': [1, 2]})]},
    {'role': 'tool', 'content': '{"t": 21.5}', 'tool_call_id': 'abcdefghi', 'name': 'weather'},
]

CHATS = {
    'user': {'messages': [USER]},
    'system': {'messages': [SYSTEM, USER]},
    'turns': {'messages': [
        SYSTEM, USER, {'role': 'assistant', 'content': ' Nothing.\n'},
        {'role': 'user', 'content': '<|im_end|> </s> {{ 7*7 }}'}]},
    'no_prompt': {'messages': [USER, {'role': 'assistant', 'content': 'One, two,'}],
                  'add_generation_prompt': False},
    'continued': {'messages': [USER, {'role': 'assistant', 'content': 'One, two, '}],
                  'add_generation_prompt': False, 'continue_final_message': True},
    'two_users': {'messages': [USER, USER]},
    'tools': {'messages': [USER], 'tools': TOOLS},
    'system_tools': {'messages': [SYSTEM, USER], 'tools': TOOLS[:1]},
    'calling': {'messages': CALLING, 'tools': TOOLS},
    'called': {'messages': CALLING + [{'role': 'assistant', 'content': 'Warm.'},
                                      {'role': 'user', 'content': 'And now?'}],
               'tools': TOOLS},
    'two_calls': {'messages': [
        SYSTEM, {'role': 'user', 'content': 'Both.'},
        {'role': 'assistant', 'content': 'I will.',
         'tool_calls': [call('sum', {'values': [1, 2.5]}), call('sum', {}, '123456789')]},
        {'role': 'tool', 'content': '3.5', 'tool_call_id': 'abcdefghi'},
        {'role': 'tool', 'content': 'é', 'tool_call_id': '123456789'}], 'tools': TOOLS},
    'reasoning': {'messages': [
        USER, {'role': 'assistant', 'content': '<think>\nhm\n</think>\n\nYes.'},
        {'role': 'user', 'content': 'Sure?'},
        {'role': 'assistant', 'content': 'Yes.', 'reasoning': 'of course'}],
        'add_generation_prompt': False},
    'no_thinking': {'messages': [USER], 'kwargs': {'enable_thinking': False}},
    'kwargs': {'messages': [USER], 'tools': TOOLS[1:],
               'kwargs': {'thinking': True, 'controls': ['citations'], 'date_string': '1 May',
                          'tools_in_user_message': False, 'python_tools': ['f()']}},
    'documents': {'messages': [USER],
                  'documents': [{'title': 'A', 'text': 'Alpha'}, {'text': 'Beta', 'Z': 1}]},
}
PART_CHATS = {
    'parts': {'messages': [
        {'role': 'system', 'content': [{'type': 'text', 'text': 'Brief.'}]},
        {'role': 'user', 'content': [{'type': 'text', 'text': ' one '},
                                     {'type': 'text', 'text': 'two'}]}]},
}


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def rendered(template, chat):
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            conversations=[chat['messages']], tools=chat.get('tools'),
            documents=chat.get('documents'), chat_template=template,
            add_generation_prompt=chat.get('add_generation_prompt', True),
            continue_final_message=chat.get('continue_final_message', False),
            bos_token='<s>', eos_token='</s>', **chat.get('kwargs', {}))
        return {'text': texts[0]}
    except Exception as error:  # whatever it raises is a refusal
        return {'error': f'{type(error).__name__}: {error}'[:200]}


def main():
    chat_template_utils.datetime = Clock
    cases = []
    for name, template in T.items():
        chats = dict(CHATS, **PART_CHATS) if name in PARTS else CHATS
        for chat_name, chat in chats.items():
            row = {'template': name, 'chat': chat_name}
            row.update(rendered(template, chat))
            cases.append(row)
    out = pathlib.Path(__file__).with_name('families.json')
    with out.open('w', encoding='ascii') as file:
        json.dump({'templates': T, 'chats': dict(CHATS, **PART_CHATS), 'cases': cases},
                  file, indent=0)
        file.write('\n')


if __name__ == '__main__':
    main()
