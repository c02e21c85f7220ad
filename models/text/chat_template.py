"""ChatTemplate: a model's own program for turning a conversation into a prompt."""

from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError
from jinja2.exceptions import SecurityError

from puma.models.errors import PromptError
from puma.models.text.template_budget import LARGEST, VARIABLE, Budget, Meter, TooMuch
from puma.models.text.template_sandbox import Refused, TemplateSandbox

Message = dict[str, Any]
"""role, content and what else the template reads."""

LONGEST_MESSAGE = 500
"""Characters of a template's complaint that are passed on."""


class TemplateProblem(Exception):
    """The template cannot be compiled; the message says why, with the line."""


class ChatTemplate:
    """Compiled once, rendered by any thread. Raises TemplateProblem when the source does not compile."""

    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        self.source = source
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        sandbox = TemplateSandbox()
        try:
            self._template = sandbox.from_string(Meter().visit(sandbox.parse(source)))
        except TemplateSyntaxError as error:
            raise TemplateProblem(f"line {error.lineno}: {error.message}") from error
        except SyntaxError as error:
            raise TemplateProblem(f"it is too deep for the compiler: {error.msg}") from error
        except (TemplateError, ValueError, RecursionError, MemoryError) as error:
            raise TemplateProblem(f"{type(error).__name__}: {error}") from error

    def render(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] | None = None, *, budget: int = LARGEST
    ) -> str:
        """The prompt, up to where the assistant's answer begins.

        Raises PromptError when the template refuses the messages, fails on them, reaches out of its sandbox, or
        spends more than `budget` characters.
        """
        variables: dict[str, Any] = {
            "messages": list(messages),
            "tools": list(tools) if tools else None,
            "documents": None,
            "add_generation_prompt": True,
            VARIABLE: Budget(budget),
            **self._tokens,
        }
        try:
            return self._template.render(variables)
        except TooMuch:
            raise PromptError(f"the chat template does not end, or writes more than {budget} characters") from None
        except SecurityError as error:
            raise PromptError(f"the chat template did what templates may not do: {brief(error)}") from error
        except Refused as error:
            raise PromptError(f"the chat template refuses these messages: {brief(error)}") from error
        except MemoryError:
            raise PromptError("the chat template needs more memory than there is") from None
        except Exception as error:
            raise PromptError(f"the chat template fails on these messages: {brief(error)}") from error


def brief(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "..."
