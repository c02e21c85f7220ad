"""Whatever users write, the control tokens of a prompt are the template's own, and the text is what they wrote."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from puma.models.text.model_text import ModelText
from tests.models.text.vocabularies import CHATML, metadata

CONTROL = ("<|im_start|>", "<|im_end|>", "<|a|>", "[INST]", "[/INST]", "STOP")
OTHER = (
    "{% for m in messages %}<|im_start|>{{ m.role }}{% for p in m.content %}{{ p.text }}{% endfor %}{{ m.name }}"
    "{% if '</think>' in m.content[0].text %}!{{ m.content[0].text.split('</think>')[-1] | trim }}{% endif %}"
    "{% if m.extra is defined %}{{ m | tojson }}{{ m.content | tojson(ensure_ascii=true) }}{% endif %}<|im_end|>"
    "{% endfor %}"
)
PIECES = ["<|im_start|>", "<|im_end|>", "<|im_", "end|>", "|im_end|>", "<", "<|", "|>", ">", "[", "INST]", "/INST]"]
PIECES += ["STOP", "ST", "OP", "a", "|a|", "</think>", "<think>", "</", "\ue000", "\\ue000", '"', "\\", "\n", "é", " "]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)

PLAIN = ModelText.from_gguf(metadata(control=CONTROL, template=CHATML))
CLEVER = ModelText.from_gguf(metadata(control=CONTROL, template=OTHER))


def counted(text: ModelText, messages) -> int:
    return sum(token < len(CONTROL) for token in text.encode_chat(messages))


def spelt(text: ModelText, messages) -> str:
    return b"".join(map(text.tokenizer.token_bytes, text.encode_chat(messages))).decode()


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_plain_template(contents):
    messages = [{"role": "user", "content": content} for content in contents]
    assert counted(PLAIN, messages) == 2 * len(messages) + 1
    assert spelt(PLAIN, messages) == PLAIN.template.render(messages)


@settings(deadline=None, max_examples=50)
@given(st.lists(TEXTS, min_size=1, max_size=3), TEXTS, TEXTS)
def test_a_template_that_joins_splits_and_dumps(parts, name, key):
    parts = [{"type": "text", "text": part} for part in parts]
    messages = [{"role": "user", "content": parts, "name": name, "extra": {key: [name]}}]
    assert counted(CLEVER, messages) == 2
    assert spelt(CLEVER, messages) == CLEVER.template.render(messages)


def test_a_spelling_made_by_the_template_out_of_two_texts():
    parts = [{"type": "text", "text": "<|im_"}, {"type": "text", "text": "end|>"}]
    assert counted(CLEVER, [{"role": "user", "content": parts}]) == 2


@pytest.mark.parametrize(
    ("template", "content"),
    [
        ("{{ messages[0].content.replace('<x>', '') }}", "<<x>|im_end|>"),
        ("{{ messages[0].content.replace('<x>', '') }}", "<|im_<x>end|>"),
        ("{{ messages[0].content | replace('-', '') | trim }}", "<|im-_end|>"),
        ("<{{ messages[0].content }}>", "|im_end|"),
        ("<{{ messages[0].content }}", "|im_end|>"),
        ("<|{{ messages[0].content }}|>", "im_end"),
        ("{{ messages[0].content[:10] }}", "<|im_end|>"),
        ("{{ messages[0].content | upper }}", "[inst]"),
    ],
)
def test_a_spelling_made_by_the_templates_own_means(template, content):
    text = ModelText.from_gguf(metadata(control=CONTROL, template=template))
    assert counted(text, [{"role": "user", "content": content}]) == 0


def test_tags_that_the_template_looks_for_are_found():
    parts = [{"type": "text", "text": "<think>a</think> b "}]
    assert "!b<" in spelt(CLEVER, [{"role": "user", "content": parts}])


def test_tools_are_guarded():
    text = ModelText.from_gguf(metadata(control=CONTROL, template="{{ tools | tojson }}<|im_end|>"))
    ids = text.encode_chat(
        [{"role": "user", "content": "a"}], [{"name": "<|im_end|>", "<|im_start|>": {"STOP": "[INST]"}}]
    )
    assert sum(token < len(CONTROL) for token in ids) == 1


def test_all_private_characters_but_one():
    used = "".join(map(chr, range(0xE000, 0xF8FF)))
    assert spelt(PLAIN, [{"role": "user", "content": "<" + used}]).count(used) == 1
