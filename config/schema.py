"""The JSON schema of a configuration file, for editors and other programs: `puma config schema`."""

from typing import Any

from puma.config.options import LONGEST_TEXT, Option
from puma.config.sections import SECTIONS, options_in

SIZE_PATTERN = r"^[0-9]{1,18}(\.[0-9]{1,18})? ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)?$"
SHARE_PATTERN = r"^[0-9]{1,3}(\.[0-9]{1,6})? ?%$"


def json_schema() -> dict[str, Any]:
    """JSON schema, draft 2020-12. What depends on several values, on the model or on the machine is not in it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Puma's configuration",
        "type": "object",
        "additionalProperties": False,
        "properties": {section: _section(section) for section in SECTIONS},
    }


def _section(section: str) -> dict[str, Any]:
    properties = {option.key: _property(option) for option in options_in([section])}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _property(option: Option) -> dict[str, Any]:
    forms = [_form(option)]
    if option.kind == "size":
        forms.append({"type": "string", "pattern": SIZE_PATTERN})
    if option.share:
        forms.append({"type": "string", "pattern": SHARE_PATTERN})
    if option.words and option.kind != "text":
        forms.append({"enum": list(option.words)})
    facts: dict[str, Any] = {"description": option.description}
    if not option.secret:
        facts["default"] = "auto" if option.default is None else option.default
    if option.unit:
        facts["unit"] = option.unit
    return facts | (forms[0] if len(forms) == 1 else {"anyOf": forms})


def _form(option: Option) -> dict[str, Any]:
    match option.kind:
        case "count" | "size":
            form: dict[str, Any] = {"type": "integer", "minimum": option.low, "maximum": option.high}
            return form | ({"multipleOf": option.multiple_of} if option.multiple_of > 1 else {})
        case "switch":
            return {"type": "boolean"}
        case "choice":
            return {"enum": list(option.choices)}
        case "text":
            return {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT}
