"""From a conversation as the API takes it to one as a given chat template takes it."""

import json
from collections.abc import Sequence
from typing import Any, cast

from puma.models.errors import PromptError
from puma.models.text.chat_template import Message
from puma.models.text.traits import Traits

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""Templates write roles into control tokens (`<|user|>`), so no others may come in."""


def check(messages: Sequence[Message]) -> None:
    """Raise PromptError, naming the place, unless every message has a known role and a content of text."""
    if not messages:
        raise PromptError("messages is empty")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise PromptError(f"messages[{index}] is {message!r}; it must be an object")
        role, content = message.get("role"), message.get("content")
        if role not in ROLES:
            raise PromptError(f"messages[{index}].role is {role!r}; allowed: {', '.join(ROLES)}")
        if content is None:
            if not message.get("tool_calls"):
                raise PromptError(f"messages[{index}].content is missing")
        elif isinstance(content, list):
            for number, part in enumerate(cast("list[Any]", content)):
                check_part(part, f"messages[{index}].content[{number}]")
        elif not isinstance(content, str):
            raise PromptError(f"messages[{index}].content is neither text nor a list of text parts")


def check_part(part: Any, place: str) -> None:
    known = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    if known.get("type") != "text" or not isinstance(known.get("text"), str):
        kind = known.get("type")
        raise PromptError(f"{place} has type {kind!r}; this model takes parts of type 'text', with their text")


def adapt(messages: Sequence[Message], traits: Traits) -> tuple[list[Message], bool]:
    """The messages as the template takes them, and whether a system turn had to be folded into a user turn.

    Raises PromptError as `check` does.
    """
    check(messages)
    adapted = [fit_role(message, traits) for message in messages]
    folds = not traits.system and any(message["role"] == "system" for message in adapted)
    if folds:
        adapted = fold_system(adapted)
    return [fit_content(fit_calls(message, traits), traits) for message in adapted], folds


def fit_role(message: Message, traits: Traits) -> Message:
    role = message["role"]
    if role == "developer" and not traits.developer:
        role = "system"
    elif role in ("tool", "function"):
        role = "tool" if traits.results else "user"
    return {**message, "role": role}


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """System turns put before the text of the user turn that follows, separated by a blank line.

    Without one that follows, they become a user turn themselves.
    """
    folded: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "system":
            waiting.append(text_of(message["content"]))
        elif message["role"] == "user" and waiting:
            folded.append({**message, "content": "\n\n".join([*waiting, text_of(message["content"])])})
            waiting = []
        else:
            folded.append(message)
    if waiting:
        folded.append({"role": "user", "content": "\n\n".join(waiting)})
    return folded


def fit_calls(message: Message, traits: Traits) -> Message:
    """Tool calls with their arguments as an object, as templates expect them; as JSON text for other templates."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    calls = [fit_call(call) for call in calls]
    if traits.calls:
        content = message.get("content")
        return {
            **message,
            "content": "" if content is None and not traits.null_content else content,
            "tool_calls": calls,
        }
    spoken = [json.dumps(call.get("function", call), ensure_ascii=False) for call in calls]
    content = [text_of(message["content"])] if message.get("content") else []
    return {"role": message["role"], "content": "\n".join([*content, *spoken])}


def fit_call(call: Any) -> Message:
    """One call; arguments that are no JSON object stay what they are."""
    if not isinstance(call, dict):
        raise PromptError(f"a tool call must be an object, not {call!r}")
    known = cast("Message", call)
    function: dict[str, Any] = known.get("function") or {}
    try:
        arguments = json.loads(function["arguments"])
    except (KeyError, TypeError, ValueError):
        return known
    return {**known, "function": {**function, "arguments": arguments}} if isinstance(arguments, dict) else known


def fit_content(message: Message, traits: Traits) -> Message:
    """Text parts for a template that takes them, otherwise the texts joined by a newline."""
    content = message.get("content")
    if isinstance(content, list) and not traits.parts:
        return {**message, "content": text_of(content)}
    if isinstance(content, str) and not traits.strings:
        return {**message, "content": [{"type": "text", "text": content}]}
    return message


def text_of(content: Any) -> str:
    """A content as one string."""
    if isinstance(content, list):
        return "\n".join(part["text"] for part in cast("list[Message]", content))
    return content or ""
