"""A request's body to its struct, or a BadRequest that names the field.

UTF-8 is expected; a byte-order mark before it is skipped. Of a key that is given twice the last one counts.
"""

import re
from typing import Any, TypeVar

import msgspec

from puma.actors.errors import BadRequest

T = TypeVar("T")

BOM = b"\xef\xbb\xbf"

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_anything = msgspec.json.Decoder[Any]()

_PATH = re.compile(r"(.*) - at `\$\.?(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """The body, checked before, as the decoder's type. Raises BadRequest."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error)) from None
    except msgspec.DecodeError as error:
        raise BadRequest(_not_json(str(error))) from None
    except RecursionError:
        raise BadRequest("the request body is nested too deeply") from None


def checked(body: bytes) -> bytes:
    """The body without a byte-order mark. Raises BadRequest when it is empty or no proper UTF-8.

    The decoder looks into fields it knows only, so what is wrong with the text as a whole is found here.
    """
    body = body.removeprefix(BOM)
    if not body.strip():
        raise BadRequest("the request body is empty; a JSON object is expected")
    if body[:2] in (b"\xff\xfe", b"\xfe\xff") or 0 in body[:2]:
        raise BadRequest("the request body is not UTF-8: it looks like UTF-16 or UTF-32")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the request body is not UTF-8: {error.reason} at byte {error.start}") from None
    half = _half_pair(body) if b"\\u" in body else None
    if half is not None:
        raise BadRequest(f"the request body holds half a character, {half}: its other surrogate half is missing")
    return body


def members(body: bytes) -> dict[str, msgspec.Raw]:
    """The members of an object, known or not, with their values as they stand. Raises BadRequest."""
    return decode(body, _members)


def value_of(raw: msgspec.Raw) -> Any:
    """A member's value as plain Python objects. Raises BadRequest."""
    return decode(bytes(raw), _anything)


def _wrong_field(text: str) -> BadRequest:
    match = _PATH.fullmatch(text)
    fault, path = (match[1], match[2]) if match else (text, "")
    missing = _MISSING.fullmatch(fault)
    if missing:
        path = f"{path}.{missing[1]}" if path else missing[1]
        return BadRequest(f"{path}: this field is required", param=path)
    if not path:
        return BadRequest(f"the request body is not what this route takes: {_lower(fault)}")
    # The faulty item of a list is told in the message; the field is the list.
    return BadRequest(f"{path}: {_lower(fault)}", param=re.sub(r"(\[[^\]]*\])+$", "", path))


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _not_json(text: str) -> str:
    if "truncated" in text:
        return "the request body is not valid JSON: it ends too early"
    return f"the request body is not valid JSON: {_lower(text.removeprefix('JSON is malformed: '))}"


def _half_pair(body: bytes) -> str | None:
    r"""The first surrogate escape without its other half, such as \ud83d, and where it is."""
    high: re.Match[bytes] | None = None
    for match in _ESCAPE.finditer(body):
        unit = int(match[1], 16) if match[1] else 0
        joins = high is not None and high.end() == match.start() and 0xDC00 <= unit < 0xE000
        if high is not None and not joins:
            break
        if high is None and 0xDC00 <= unit < 0xE000:
            high = match
            break
        high = match if 0xD800 <= unit < 0xDC00 else None
    return None if high is None else f"{high[0].decode()} at byte {high.start()}"
