from datetime import datetime

import pytest

from puma.models.errors import PromptError
from puma.models.text.chat_template import ChatTemplate, TemplateProblem

HELLO = [{"role": "user", "content": "Hello"}]


def render(source: str, messages=HELLO, tools=None, **tokens) -> str:
    return ChatTemplate(source, **tokens).render(messages, tools)


def refusal(source: str, messages=HELLO) -> str:
    with pytest.raises(PromptError) as caught:
        render(source, messages)
    assert "Traceback" not in caught.value.message
    assert ".py" not in caught.value.message
    return caught.value.message


def test_variables():
    source = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ add_generation_prompt }}{{ tools is none }}"
    assert render(source, bos_token="<s>", eos_token="</s>") == "<s>Hello</s>TrueTrue"


def test_blocks_leave_no_white_space():
    assert render("a\n  {% if true %}\nb\n  {% endif %}\nc") == "a\nb\nc"


def test_loop_controls_and_the_generation_tag():
    source = (
        "{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}"
        "{% generation %}{{ m.content }}{% endgeneration %}{% continue %}x{% endfor %}"
    )
    assert render(source, HELLO * 3) == "Hello"


def test_loops_know_where_they_are():
    source = "{% for m in messages %}{{ loop.index0 }}/{{ loop.length }}{{ ',' if not loop.last }}{% endfor %}"
    assert render(source, HELLO * 3) == "0/3,1/3,2/3"
    assert render("{% for x in absent %}x{% else %}none{% endfor %}") == "none"
    assert render("{% for k, v in messages[0].items() %}{{ k ~ '=' ~ v ~ none }};{% endfor %}") == (
        "role=userNone;content=HelloNone;"
    )


def test_todays_date():
    assert render("{{ strftime_now('%Y-%m-%d') }}") == datetime.now().strftime("%Y-%m-%d")


TOOL = {"type": "function", "function": {"name": "查", "description": "天气 😀 <b>&'\""}}


def test_json_is_not_escaped():
    assert render("{{ tools[0].function | tojson }}", tools=[TOOL]) == (
        '{"name": "查", "description": "天气 😀 <b>&\'\\""}'
    )
    assert render("{{ {'b': 1, 'a': [2]} | tojson(indent=2) }}") == '{\n  "b": 1,\n  "a": [\n    2\n  ]\n}'
    assert render("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) }}") == '{"a":2,"b":1}'
    assert render("{{ 'é' | tojson(ensure_ascii=true) }}") == '"\\u00e9"'


def test_what_the_template_says_when_it_refuses():
    source = "{{ raise_exception('Roles must alternate, not ' + messages[0].role) }}"
    assert "Roles must alternate, not user" in refusal(source)


def test_what_goes_wrong_inside():
    assert "None" in refusal("{{ messages[0].content + none }}")
    assert "'nothing' is undefined" in refusal("{{ nothing.at.all }}")
    assert len(refusal("{{ raise_exception('x' * 100000) }}")) < 1000


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''['__class__'] }}{{ (''|attr('__class__')).__mro__ }}",
        "{{ raise_exception.__globals__['json'] }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update(role='system') }}",
        "{{ '{0.__class__.__mro__}'.format('') + ''.__class__ }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
    ],
)
def test_nothing_leaves_the_sandbox(source):
    message = refusal(source)
    assert "may not do" in message or "undefined" in message


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{{ messages[0].content * 1000 }}{% endfor %}",
        "{% set x = messages[0].content * 1000 %}{% for a in range(99999) %}{{ x }}{% endfor %}",
        "{% for a in range(99999) %}" + "x" * 1000 + "{% endfor %}",
        "{% macro twice(n) %}{% if n %}{{ twice(n - 1) }}{{ twice(n - 1) }}{% endif %}{% endmacro %}{{ twice(64) }}",
        "{% macro long() %}" + "x" * 10_000 + "{% endmacro %}{% for a in range(9999) %}{{ long() }}{% endfor %}",
        "{% set n = namespace(x='xy') %}{% for i in range(64) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "{% set n = namespace(x='xy') %}{% for i in range(64) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x=[1]) %}{% for i in range(64) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x='xy') %}{% for i in range(64) %}{% set n.x = n.x.replace('x', n.x) %}{% endfor %}",
        "{% set n = namespace(x='xy') %}{% for i in range(64) %}{% set n.x = n.x|replace('x', n.x) %}{% endfor %}",
        "{{ 'x' * 10 ** 10 }}",
        "{{ 10 ** 10 * [1] }}",
        "{{ 9 ** (9 ** 9) }}",
        "{{ 'x'.ljust(10 ** 10) }}",
        "{{ 'x' | center(10 ** 10) }}",
        "{{ 'x\n' | indent(10 ** 10) }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ '%9999999999d' | format(1) }}",
        "{{ '{:>9999999999}'.format(1) }}",
    ],
)
def test_what_does_not_end_is_ended(source):
    template = ChatTemplate(source)
    with pytest.raises(PromptError, match="does not end"):
        template.render(HELLO, budget=2_000_000)


def test_recursion_ends():
    assert "recursion" in refusal("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")


def test_a_long_conversation_is_no_endless_one():
    messages = [{"role": "user", "content": "word " * 2000}] * 1000
    source = "{% for m in messages %}{{ m.role.strip() ~ m.content.strip() | trim }}{% endfor %}"
    assert len(render(source, messages)) == 1000 * (4 + 9999)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("a\n{% if true %}\n{% frob %}", "line 3"),
        ("a\n\n\n{{ messages[0 }}", "line 4"),
        ("{% for m in messages %}", "line 1"),
        ("{{ x | no_such_filter }}", "no_such_filter"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "RecursionError"),
        ("{% for i in x %}" * 30 + "{% endfor %}" * 30, "too deep"),
    ],
)
def test_what_cannot_be_compiled(source, problem):
    with pytest.raises(TemplateProblem, match=problem):
        ChatTemplate(source)


def test_compiling_computes_nothing():
    ChatTemplate("{{ 'x' * 10 ** 12 }}{{ 'x' | center(10 ** 12) }}")


def test_reference_prompts(smollm2, reference):
    for case in reference["templates"].values():
        assert smollm2.template.render(case["messages"]) == case["prompt"]
