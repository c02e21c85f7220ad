"""The sandbox in which chat templates run, with what Hugging Face's templates expect to find in it.

Source: transformers, "Writing a chat template", and its `render_jinja_template`.
"""

import json
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import nodes, pass_context
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from puma.models.text import template_budget
from puma.models.text.template_budget import CALL, Counted, budget_of


class Refused(Exception):
    """The template said so itself, with raise_exception."""


class GenerationTag(Extension):
    """`{% generation %}`: marks an assistant's text for training; here its body is text like any other."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Nothing can be changed or reached from within, and nothing costs more than the rendering's budget."""

    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[LoopControlExtension, GenerationTag],
            finalize=written,
        )
        for name in ("center", "format", "indent", "replace"):
            self.filters[name] = charged(name, self.filters[name])
        self.filters |= {"tojson": to_json, "puma counted": counted, "puma joined": joined}
        self.globals |= {"raise_exception": raise_exception, "strftime_now": strftime_now}

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget_of(context).charge(template_budget.operation_size(operator, left, right))
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, function: Any, /, *arguments: Any, **named: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        size = template_budget.call_size(function, (*arguments, *named.values()))
        budget_of(context).charge(CALL + size)
        return super().call(context, function, *arguments, **named)


def charged(name: str, function: Any) -> Any:
    """A filter of the sandbox that costs what it may write."""

    @pass_context
    def filtered(context: Context, value: Any, *arguments: Any, **named: Any) -> Any:
        budget_of(context).charge(template_budget.text_size(name, str(value), (*arguments, *named.values())))
        passed = (context.eval_ctx, value) if name == "replace" else (value,)
        return function(*passed, *arguments, **named)

    return filtered


@pass_context
def written(context: Context, value: Any) -> str:
    """What `{{ value }}` writes."""
    text = str(value)
    budget_of(context).charge(len(text))
    return text


@pass_context
def counted(context: Context, items: Any, cost: int) -> Counted:
    return Counted(items, budget_of(context), cost)


@pass_context
def joined(context: Context, values: list[Any]) -> str:
    """What `a ~ b` is."""
    texts = [str(value) for value in values]
    budget_of(context).charge(sum(map(len, texts)))
    return "".join(texts)


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as models were trained on it: no escapes that only HTML needs, and other scripts as they are."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message: str) -> NoReturn:
    """How a template refuses a conversation."""
    raise Refused(message)


def strftime_now(layout: str) -> str:
    """The local date and time."""
    return datetime.now().strftime(layout)
