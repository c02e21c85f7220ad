"""Conversations to ids, through templates of every temper."""

import logging
import re

import pytest

from puma.models.errors import PromptError
from puma.models.text.model_text import ModelText
from tests.models.text.vocabularies import CHATML, metadata

TURN = "<|im_start|>{{ m.role }}\n"
PARTS = (
    "{% for m in messages %}" + TURN + "{% for p in m.content %}{% if p.type == 'text' %}[{{ p.text }}]{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}"
)
BOTH = (
    "{% for m in messages %}" + TURN + "{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system turns') }}{% endif %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    + TURN
    + "{{ m.content }}<|im_end|>\n{% endfor %}"
)
DROPS_SYSTEM = "{% for m in messages %}{% if m.role != 'system' %}" + TURN + "{{ m.content }}\n{% endif %}{% endfor %}"
CALLS = (
    "{% for m in messages %}" + TURN + "{% if m.tool_calls %}{% if m.content is none %}<call>{% endif %}"
    "{% for c in m.tool_calls %}{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}"
    "{% endfor %}){% endfor %}{% else %}{{ m.content + '' }}{% endif %}<|im_end|>\n{% endfor %}"
)
CALLS_BUT_NO_NULL = (
    "{% for m in messages %}" + TURN + "{{ m.content + '' }}{% for c in m.tool_calls or [] %}"
    "{{ c.function | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
)
CALLS_BUT_NO_NULL_BEFORE_A_RESULT = CALLS.replace(
    TURN, TURN + "{% if m.role == 'tool' %}{{ messages[loop.index0 - 1].content + '' }}{% endif %}"
)
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"at": "Köln"}'}}],
}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "rain"}


def make(template: object = CHATML, **keys) -> ModelText:
    return ModelText.from_gguf(metadata(template=template, **keys))


def user(content, role="user"):
    return {"role": role, "content": content}


def spelt(text: ModelText, messages, tools=None) -> str:
    return b"".join(map(text.tokenizer.token_bytes, text.encode_chat(messages, tools))).decode()


def controls(text: ModelText, messages) -> int:
    known = set(text.tokenizer.controls.ids.values())
    return sum(token in known for token in text.encode_chat(messages))


def test_reference_prompts_to_ids(smollm2, reference):
    for name, case in reference["templates"].items():
        ids = smollm2.encode_chat(case["messages"])
        assert b"".join(map(smollm2.tokenizer.token_bytes, ids)).decode() == case["prompt"]
        if name != "injection":
            assert ids == smollm2.tokenizer.encode_prompt(case["prompt"])
    assert controls(smollm2, reference["templates"]["injection"]["messages"]) == 5


def test_no_template():
    text = make(None)
    assert text.template is None
    assert "no chat template" in text.template_problem
    with pytest.raises(PromptError, match=re.escape("tokenizer.chat_template")):
        text.encode_chat([user("hi")])
    assert text.tokenizer.encode_prompt("hi")


def test_a_template_that_does_not_compile_is_told_at_load(caplog):
    with caplog.at_level(logging.WARNING):
        text = make("ok\n{% frob %}")
    assert "line 2" in text.template_problem
    assert "line 2" in caplog.text
    with pytest.raises(PromptError, match="line 2"):
        text.encode_chat([user("hi")])
    assert text.tokenizer.encode_prompt("hi")


def test_a_template_that_is_no_text():
    assert "int" in make(5).template_problem


def test_the_templates_own_refusal():
    with pytest.raises(PromptError, match="roles must alternate"):
        make(NO_SYSTEM).encode_chat([user("a"), user("b")])


def test_a_template_that_runs_code_is_refused():
    with pytest.raises(PromptError, match="unsafe"):
        make("{{ ''.__class__.__mro__ }}").encode_chat([user("a")])


@pytest.mark.parametrize("template", [NO_SYSTEM, DROPS_SYSTEM])
def test_a_system_turn_is_folded_where_it_is_not_taken(template, caplog):
    text = make(template)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            assert "system" not in spelt(text, [user("Be terse.", "system"), user("Hi")])
            assert "user\nBe terse.\n\nHi" in spelt(text, [user("Be terse.", "system"), user("Hi")])
    assert caplog.text.count("system turn") == 1


def test_folding_takes_parts_and_needs_no_user_turn():
    text = make(NO_SYSTEM)
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert "user\na\nb\n\na\nb<" in spelt(text, [user(parts, "developer"), user(parts)])
    assert "user\nBe terse.<" in spelt(text, [user("Be terse.", "system")])


def test_a_system_turn_stays_where_it_is_taken():
    assert "<|im_start|>system\nBe terse.<|im_end|>" in spelt(make(), [user("Be terse.", "system"), user("Hi")])


def test_developer_is_system_where_the_template_does_not_know_it(smollm2):
    conversation = [user("Be terse.", "developer"), user("Hi")]
    assert smollm2.encode_chat(conversation) == smollm2.encode_chat([user("Be terse.", "system"), user("Hi")])
    knows = make("{% for m in messages %}{% if m.role == 'developer' %}!{% endif %}{{ m.content }}{% endfor %}")
    assert spelt(knows, conversation) == "!Be terse.Hi"


def test_roles_may_be_part_of_a_control_token():
    control = ("<|user|>", "<|assistant|>", "<|end|>")
    phi = "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}<|assistant|>"
    text = make(phi, control=control)
    assert text.encode_chat([user("a"), user("b", "assistant"), user("user")]).count(0) == 2
    assert controls(text, [user("a"), user("b", "assistant")]) == 5


def test_a_template_that_is_too_choosy_to_be_probed_gets_its_messages_as_they_are():
    source = (
        "{% if messages[0].content == 'magic' %}{{ messages[0].role }}{% else %}{{ raise_exception('no') }}{% endif %}"
    )
    assert spelt(make(source), [user("magic", "system")]) == "system"


def test_one_text_part_is_the_plain_string(smollm2):
    for text in (smollm2, make(BOTH), make(PARTS)):
        part = [user([{"type": "text", "text": "Hi there"}])]
        assert text.encode_chat(part) == text.encode_chat([user("Hi there")])


def test_several_parts():
    parts = [user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])]
    assert "user\na\nb<" in spelt(make(), parts)
    assert "user\nab<" in spelt(make(BOTH), parts)
    assert "user\n[a][b]<" in spelt(make(PARTS), parts)


@pytest.mark.parametrize("template", [CHATML, CALLS, CALLS_BUT_NO_NULL, CALLS_BUT_NO_NULL_BEFORE_A_RESULT, BOTH])
@pytest.mark.parametrize("call", [CALL, {key: CALL[key] for key in ("role", "tool_calls")}])
def test_tool_calls_with_null_or_no_content(template, call):
    prompt = spelt(make(template), [user("Weather?"), call, RESULT])
    for part in ("weather", "Köln", "rain"):
        assert part in prompt
    assert "None" not in prompt


def test_templates_that_look_for_null_find_it():
    assert "<call>weather(at=Köln)" in spelt(make(CALLS), [user("Weather?"), CALL, RESULT])


def test_results_are_user_turns_where_the_template_takes_no_tool():
    assert "user\nrain<" in spelt(make(NO_SYSTEM), [user("Weather?"), CALL, RESULT])


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "messages is empty"),
        ([None], "messages[0] is None"),
        ([user("a"), user("b", "<|im_start|>")], "messages[1].role"),
        ([user("b", None)], "messages[0].role"),
        ([user("b", "im_end")], "messages[0].role is 'im_end'"),
        ([user(None)], "messages[0].content is missing"),
        ([user(5)], "messages[0].content is neither"),
        ([user(["a"])], "messages[0].content[0]"),
        ([user([{"type": "image_url", "image_url": {}}])], "messages[0].content[0] has type 'image_url'"),
        ([user([{"type": "text"}])], "messages[0].content[0]"),
        ([user("a"), user("ab\ud83d")], "messages[1]: character 3"),
        ([user("a"), {**CALL, "tool_calls": ["x"]}], "a tool call must be an object"),
        ([{**CALL, "tool_calls": [{"function": {"name": "x\udc00"}}]}], "messages[0]"),
        ([{**CALL, "tool_calls": [{"function": {"name": "x", "arguments": '{"a": "\\ud83d"}'}}]}], "surrogate"),
    ],
)
def test_messages_that_make_no_prompt(messages, problem):
    for template in (CHATML, CALLS):
        with pytest.raises(PromptError) as caught:
            make(template).encode_chat(messages)
        assert problem in caught.value.message


def test_a_whole_surrogate_pair_is_a_character(smollm2):
    assert "😁" in spelt(smollm2, [user("\U0001f601")])


def test_nesting_without_end():
    nested: dict = {}
    for _ in range(100_000):
        nested = {"a": nested}
    with pytest.raises(PromptError, match="nested too deeply"):
        make().encode_chat([{**user("a"), "extra": nested}])


@pytest.mark.parametrize("add", [True, False])
def test_one_start_token_and_no_more(add):
    keys = {"control": ("<s>", "</s>"), "bos_token_id": 0, "eos_token_id": 1, "add_bos_token": add}
    writes = make("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", **keys)
    assert writes.encode_chat([user("<s>a")]).count(0) == 1
    assert writes.encode_chat([user("<s>a")])[0] == 0
    assert writes.encode_chat([user("a")])[-1] == 1
    silent = make("{{ messages[0].content }}", **keys)
    assert silent.encode_chat([user("a")]).count(0) == int(add)
