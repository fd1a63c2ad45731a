"""Writes templates.json beside it: chat templates, conversations, and what Jinja makes of them.

    python3 make_templates.py         needs jinja2 from PyPI

The environment is the one in which Hugging Face's transformers runs templates. Expected null: it raises.
"""
import json
import os

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

FAMILIES = {
    "chatml": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "smollm2": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
               "{{ '<|im_start|>system\\nBe of help.<|im_end|>\\n' }}{% endif %}"
               "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
               "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "qwen2": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nBe of help.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- for call in message.tool_calls %}
            {%- if call.function is defined %}
                {%- set call = call.function %}
            {%- endif %}
            {{- call.arguments | tojson }}
        {%- endfor %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "qwen3": """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
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
    {%- if message.role != "assistant" %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- else %}
        {%- set reasoning_content = '' %}
        {%- if '</think>' in content %}
            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning_content)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "llama2": "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}"
              "{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}"
              "{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
              "{{ raise_exception('roles must take turns: user, assistant') }}{% endif %}"
              "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
              "{% else %}{% set content = message['content'] %}{% endif %}"
              "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
              "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}",
    "llama3": "{% set loop_messages = messages %}{% for message in loop_messages %}"
              "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' %}"
              "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
    "llama3.1": """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system message comes first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if builtin_tools is defined or tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{%- if builtin_tools is defined %}
    {{- "Tools: " + builtin_tools | reject('equalto', 'code_interpreter') | join(", ") + "\\n\\n"}}
{%- endif %}
{{- "Knowledge until: December 2023\\n" }}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("only one tool call at once") }}
        {%- endif %}
        {%- for arg_name, arg_val in message.tool_calls[0].arguments | items %}
            {{- arg_name + '="' + arg_val + '"' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "mistral": "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
               "{{ raise_exception('roles must take turns: user, assistant') }}{% endif %}{% if message['role'] == 'user' %}"
               "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}"
               "{% else %}{{ raise_exception('only the roles user and assistant') }}{% endif %}{% endfor %}",
    "mistral-v0.3": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list if tools is not none else [] %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("roles must take turns") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("only user and assistant") }}
    {%- endif %}
{%- endfor %}
""",
    "gemma": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
             "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
             "{{ raise_exception('roles must take turns: user, assistant') }}{% endif %}"
             "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}"
             "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
             "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}",
    "phi3": "{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}"
            "{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}"
            "{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}",
    "zephyr": """{% for message in messages %}
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
    "vicuna": "{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] ~ ' ' %}{% set messages = messages[1:] %}"
              "{% else %}{% set first = '' %}{% endif %}{{ first }}{% for m in messages %}{{ {'user': 'USER', 'assistant': 'ASSISTANT'}[m.role] ~ ': ' "
              "~ m.content ~ (' ' if m.role == 'user' else eos_token) }}{% endfor %}{{ 'ASSISTANT:' if add_generation_prompt }}",
}

SYSTEM, USER, REPLY = {"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": " What is\u00a0a GPT? "}, {"role": "assistant", "content": "\nA model. "}
LAST = {"role": "user", "content": "Which <|im_end|> kind?\u2003"}
THOUGHT = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nA decoder."}
CONVERSATIONS = [[USER], [SYSTEM, USER], [USER, REPLY, LAST], [SYSTEM, USER, REPLY, LAST, THOUGHT], [USER, LAST], [SYSTEM]]

# The language piece by piece; each is rendered with CONVERSATIONS[2].
PIECES = [
    "a\n", "a\n\n", "a\r\nb\r\n", "{{ 'x' }}\n", "{{ 'x' }}\n\ny", "  {% if true %}\n  a\n  {% endif %}\n  b\n", "  {%+ if true %}\n a{% endif +%}\nb", "a  {%- if true -%}  b  {%- endif -%}  c",
    "a\n  {{- 'b' -}}  \n c", "{# note #}\nx", "  {# note #}\nx", "a {#- note -#} b", "a\u00a0{%- if true %} b{% endif %}", "x  {% if 1 %}y{% endif %}", "\n\n{% if 1 %}\n\ny{% endif %}", "{{ '{{' }}{{ '%}' }}",
    "{{ 1 + 2 }} {{ 7 - 10 }} {{ 2 * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }}", "{{ 1 ~ 'a' ~ none ~ true }}", "{{ 'a' + 1 }}", "{{ 'a' 'b' \"c\" }}", "{{ 'a\\tb\\\\c\\'d\\\"' }}",
    "{{ true and 'x' }} {{ '' or 'y' }} {{ not 0 }} {{ 1 and 0 }} {{ none or false }}", "{{ not true == false }}", "{{ 1 == true }} {{ '1' == 1 }} {{ none == false }} {{ [1, 2] == [1, 2] }} {{ {'a': 1} == {'a': 1} }}",
    "{{ 1 < 2 }} {{ 'a' < 'b' }} {{ 2 >= 2 }} {{ 'b' <= 'a' }} {{ 1 != 2 }}", "{{ 1 < 'a' }}", "{{ 'a' in 'cat' }} {{ 1 in [1, 2] }} {{ 'k' in {'k': 1} }} {{ 'z' not in 'cat' }} {{ '' in 'a' }}", "{{ 1 in 2 }}",
    "{{ 'yes' if messages else 'no' }} {{ 'x' if false }}|", "{{ (1, 2)[1] }} {{ [1, 2, 3][-1] }} {{ 'héllo'[1] }} {{ {'a': 5}.a }} {{ {'a': 5}['a'] }}", "{{ [1][3] }}|", "{{ missing }}|", "{{ missing.x }}", "{{ missing + 'a' }}",
    "{{ messages[0].nothing }}|{{ messages[0].nothing is defined }}", "{{ 'abcdef'[1:3] }} {{ 'abcdef'[:-2] }} {{ 'abc'[::-1] }} {{ 'abc'[5:] }}| {{ 'äöü'[1:] }}", "{{ messages[1:] | length }} {{ messages[:1] | length }} {{ messages[::-1][0].role }} {{ messages[-9:9]|length }}",
    "{% for x in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}", "{% for x in [] %}a{% else %}none{% endfor %}", "{% for x in missing %}a{% else %}none{% endfor %}",
    "{% for x in [1, 2, 3, 4] if x % 2 == 0 %}{{ x }}/{{ loop.length }} {% else %}no{% endfor %}", "{% for x in [1] if false %}a{% else %}no{% endfor %}", "{% for a, b in {'x': 1, 'y': 2}.items() %}{{ a }}{{ b }}{% endfor %}", "{% for k in {'x': 1} %}{{ k }}{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in 'a\u00e9' %}{{ x }},{% endfor %}{{ 'ab'|join('-') }}{{ 'abc'|list|length }}",
    "{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in [1, 2] %}{% continue %}{% else %}none{% endfor %}", "{% for x in [1, 2] %}{% if x == 2 %}{% break %}{% endif %}{% else %}none{% endfor %}", "{% for x in [1, 2] %}{{ loop.previtem is defined }}{{ loop.nextitem }}{% endfor %}",
    "{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}", "{% set ns = namespace(x=1) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% set ns = namespace() %}{% set ns.y = 'a' %}{{ ns.y }}{{ ns.z }}", "{% set x.y = 1 %}",
    "{% for i in [1, 2] %}{% for j in [3, 4] %}{{ i }}{{ j }}{{ loop.index }} {% endfor %}{{ loop.index }} {% endfor %}", "{% if false %}a{% elif 0 %}b{% elif 1 %}c{% else %}d{% endif %}", "{% if '' %}a{% else %}b{% endif %}{% if [] %}a{% else %}b{% endif %}",
    "{{ ' a '|trim }}|{{ '\u00a0a\u2003'|trim }}|{{ 5|trim }}", "{{ 'aB'|upper }}{{ 'aB'|lower }}{{ 'aB c'|capitalize }}", "{{ 'abc'|length }}{{ 'äb'|length }}{{ [1]|count }}{{ missing|length }}", "{{ [1, 2]|first }}{{ [1, 2]|last }}{{ 'abc'|last }}{{ []|first }}|",
    "{{ missing|default('d') }}{{ ''|default('d') }}{{ ''|default('d', true) }}{{ missing|d }}|{{ none|default('x') }}", "{{ [1, 'a', none]|join(', ') }}{{ []|join }}{{ ['a', 'b']|join }}", "{{ 'aXbX'|replace('X', 'yy') }}{{ 'aXbX'.replace('X', '') }}", "{{ 5|string + 'a' }}",
    "{{ 'a'|upper|lower ~ 'b' }}", "{{ -1|string }}", "{{ 'x' ~ 'a b'|replace(' ', '_')|upper }}", "{{ ' a '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xyaxy'.lstrip('yx') }}|{{ 'a\\n\\n'.rstrip('\\n') }}|{{ ' a '.rstrip() }}|", "{{ 'a,b,c'.split(',')[1] }}{{ 'a,b,c'.split(',', 1)|join(';') }}{{ 'abc'.split('x')|length }}",
    "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith('x') }}", "{{ 'they are it'.title() }} {{ \"it's a'b\".title() }} {{ 'aBC dE'.capitalize() }} {{ 'aB'.upper() }} {{ 'aB'.lower() }}", "{{ messages[0].get('role') }}{{ messages[0].get('x') }}{{ messages[0].get('x', 'd') }}", "{{ messages[0].keys()|join(',') }}",
    "{{ 1 is number }}{{ 'a' is string }}{{ messages[0] is mapping }}{{ [] is iterable }}{{ 'a' is iterable }}{{ 1 is iterable }}{{ [] is sequence }}", "{{ none is none }}{{ 1 is not none }}{{ x is defined }}{{ x is not defined }}{{ messages is undefined }}", "{{ true is true }}{{ 1 is true }}{{ false is false }}{{ true is boolean }}{{ 1 is integer }}{{ true is integer }}",
    "{{ 3 is odd }}{{ 3 is even }}{{ 4 is divisibleby(2) }}{{ 4 is divisibleby 3 }}{{ 'a' is in ['a'] }}{{ 1 is eq(1) }}{{ 1 is ne 2 }}", "{{ 'a' is in('abc') and true }}", "{% if messages is defined and messages[0].role is eq 'user' %}y{% endif %}", "{{ raise_exception('no') }}", "{{ add_generation_prompt }} {{ tools }} {{ bos_token }}",
    "{{ {'a': [1, {'b': 'deep'}]}['a'][1].b }}", "{{ ((((1)))) }}", "{{ [[1, 2], [3]]|length }}", "{{ loop }}|", "{% generation %}x{% endgeneration %}", "{{ 'a' if true else 'b' if true else 'c' }}", "{{ ('a' ~ 'b') + 'c' }}", "{{ 'a' ~ ('b' if false) ~ 'c' }}", "{{ 1 if 0 else 2 if 0 else 3 }}",
    "{{ not messages[0].x and true }}", "{{ 'a' not in ['b'] and 'c' in ['c'] }}", "{{ {}|length }}{{ {'a': 1,}|length }}{{ [1, 2,]|length }}{{ ()|length }}{{ (1,)|length }}", "{{ true + true }}", "{{ 'k' ~ loop }}", "{{ 12345678901 * 1000 }}", "{% for m in messages -%}\n {{ m.role }}\n{%- endfor %}", "{% for m in messages +%}\n {{ m.role }}\n{%+ endfor %}",
    "{%if 1%}a{%endif%}", "{%-if 1-%} a {%-endif-%}", "{{'a'}}{{\n'b'\n}}", "{{ 'a}}b' }}{{ \"%}\" }}", "a{#b{{c#}d", "{ { } } {", "{% if true %}{% if false %}a{% else %}b{% endif %}{% else %}c{% endif %}",
    # Broken ones.
    "{{ }}", "{{ 1 + }}", "{% if %}{% endif %}", "{% if 1 %}", "{% endif %}", "{% for %}{% endfor %}", "{% for x in [1] %}", "{% else %}", "{{ 'a }}", "{{ 1", "{# x", "{% foo %}", "{{ a..b }}", "{{ [1, }}", "{{ (1 }}", "{{ 1 2 }}", "{% set = 1 %}", "{{ a b }}", "{% endfor %}", "{{ x | }}", "{{ 1 is }}", "{{ ! }}", "{% elif 1 %}", "{% if 1 %}{% endfor %}",
    "{% break %}", "{{ messages.role.x }}", "{{ none.x.y }}", "{{ 'a'.b.c }}", "{{ 1 // 0 }}",
]

# What Jinja takes and gptc refuses in words.
REFUSED = ["{{ 1 / 2 }}", "{{ 1 == 1.0 }}", "{% set a, b = 1, 2 %}{{ a }}", "{{ {'a': {'b': 1}}}}", "{{ ['a'] }}", "{{ 2 ** 3 }}", "{{ 1 < 2 < 3 }}", "{% set x %}a{% endset %}", "{% macro f() %}{% endmacro %}",
           "{% raw %}a{% endraw %}", "{{ [1]|tojson }}", "{{ messages|map(attribute='role')|join }}", "{{ range(3)|list|length }}", "{{ 'a\\x41' }}", "{{ 'ab' * 2 }}", "{{ '%s' % 1 }}",
           "{{ 'abc'[::2] }}", "{{ 'é'|upper }}", "{% filter upper %}a{% endfilter %}", "{{ {1: 2}[1] }}", "{% with x = 1 %}{{ x }}{% endwith %}", "{{ 'a b'.split()[0] }}", "{{ 'a'.join(['b', 'c']) }}", "{{ dict(a=1).a }}"]


def render(template, messages, prompt):
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            return jinja2.nodes.Scope(parser.parse_statements(["name:endgeneration"], drop_needle=True), lineno=line)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation])
    environment.globals["raise_exception"] = raise_exception
    try:
        return environment.from_string(template).render(messages=messages, tools=None, documents=None, add_generation_prompt=prompt, bos_token="<s>", eos_token="</s>")
    except Exception:  # of many kinds: syntax, types, undefined names
        return None


def main():
    families = [{"name": name, "template": template, "expected": [[render(template, messages, prompt) for prompt in (False, True)] for messages in CONVERSATIONS]}
                for name, template in FAMILIES.items()]
    pieces = [[template, render(template, CONVERSATIONS[2], True)] for template in PIECES]
    refused = [[template, render(template, CONVERSATIONS[2], True)] for template in REFUSED]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates.json"), "w", encoding="utf-8") as f:
        json.dump({"conversations": CONVERSATIONS, "families": families, "pieces": pieces, "refused": refused}, f, indent=0)
        f.write("\n")


main()
