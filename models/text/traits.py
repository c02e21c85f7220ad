"""Traits: what a chat template can take, found out by rendering small conversations with it."""

from typing import Any

import msgspec

from puma.models.errors import PromptError
from puma.models.text.chat_template import ChatTemplate, Message

SYSTEM, USER, CALL, RESULT = "probed system", "probed user", "probed_call", "probed result"

ID = "probe1234"
"""Nine letters and digits: what the strictest templates ask of the id of a call."""

AS_DATA = ("'type': 'text'", '"type": "text"')
"""How a part looks that was written as a data structure, not as its text."""

BUDGET = 1_000_000
"""Characters that a probe may spend."""


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """Each true means that the template does something sensible with it."""

    system: bool
    developer: bool
    strings: bool
    """A content that is a string."""
    parts: bool
    """A content that is a list of text parts."""
    calls: bool
    """Tool calls of an assistant's turn."""
    null_content: bool
    """A null content beside them."""
    results: bool
    """Turns of the role tool."""


def probe(template: ChatTemplate) -> Traits:
    """Render small conversations, and see whether what was said in them is there."""

    def shows(*wanted: str, messages: list[Message], unwanted: tuple[str, ...] = ()) -> bool:
        try:
            text = template.render(messages, budget=BUDGET)
        except PromptError:
            return False
        return all(part in text for part in wanted) and not any(part in text for part in unwanted)

    user = {"role": "user", "content": USER}
    part_user = {"role": "user", "content": [{"type": "text", "text": USER}]}
    parts = shows(USER, messages=[part_user], unwanted=AS_DATA)
    # A template that fails even on this is left to say so itself.
    strings = shows(USER, messages=[user]) or not parts
    user = user if strings else part_user
    plain = shows(USER, messages=[user])
    result = {"role": "tool", "tool_call_id": ID, "name": CALL, "content": RESULT}
    system = {"role": "system", "content": SYSTEM if strings else [{"type": "text", "text": SYSTEM}]}
    results = shows(RESULT, messages=[user, call(""), result])
    null_content = all(
        shows(CALL, messages=[user, call(None), *more], unwanted=("None", "null"))
        for more in ([], [result] if results else [])
    )
    return Traits(
        system=shows(SYSTEM, USER, messages=[system, user]) or not plain,
        developer="developer" in template.source,
        strings=strings,
        parts=parts,
        calls=null_content or shows(CALL, messages=[user, call("")]),
        null_content=null_content,
        results=results,
    )


def call(content: str | None) -> Message:
    """An assistant's turn that calls a tool."""
    function: dict[str, Any] = {"name": CALL, "arguments": {"argument": "value"}}
    calls = [{"id": ID, "type": "function", "function": function}]
    return {"role": "assistant", "content": content, "tool_calls": calls}
