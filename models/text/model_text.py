"""ModelText: everything about text that a model file says, as intake needs it."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from puma.models.errors import PromptError
from puma.models.text.chat_template import ChatTemplate, Message, TemplateProblem
from puma.models.text.conversation import adapt
from puma.models.text.guard import Guard, strings, unmark
from puma.models.text.tokenizer import Tokenizer, check_unicode
from puma.models.text.traits import probe

logger = logging.getLogger(__name__)

NO_TEMPLATE = (
    "this model has no chat template; ask it for a raw completion, or use a model file "
    "whose metadata has tokenizer.chat_template"
)


class ModelText:
    """Read-only after construction; any thread may use it."""

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate | None, template_problem: str | None) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.template_problem = template_problem
        """Why there is no template; None when there is one."""
        self._guard = Guard(tokenizer.controls, template.source if template else "")
        self._traits = probe(template) if template else None
        self._told_of_folding = False

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> "ModelText":
        """Raises ModelFileError when the vocabulary cannot be used; a template that cannot is only a problem."""
        tokenizer = Tokenizer.from_gguf(metadata)
        template, problem = read_template(metadata, tokenizer)
        if problem:
            logger.warning("chat requests will be refused: %s", problem)
        return cls(tokenizer, template, problem)

    def encode_chat(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] | None = None) -> list[int]:
        """The prompt for a conversation. Control tokens in it are those that the template itself wrote.

        Begins with exactly one start token if the model, or the template, wants one. Raises PromptError when there is
        no template, when it refuses the messages, and when a text holds half a surrogate pair.
        """
        if self.template is None or self._traits is None:
            raise PromptError(self.template_problem or NO_TEMPLATE)
        try:
            check_strings(messages)
            adapted, folded = adapt(messages, self._traits)
            if folded and not self._told_of_folding:
                self._told_of_folding = True
                logger.info("the chat template takes no system turn: it is put before the first user turn")
            marker = self._guard.marker([adapted, tools])
            marked = [{**self._guard.mark(message, marker), "role": message["role"]} for message in adapted]
            prompt = self.template.render(marked, self._guard.mark(tools, marker))
        except RecursionError:
            raise PromptError("the messages are nested too deeply") from None
        return self.tokenizer.with_bos(self._encode_marked(prompt, marker))

    def _encode_marked(self, prompt: str, marker: str) -> list[int]:
        ids: list[int] = []
        for part in self.tokenizer.controls.split(prompt):
            if isinstance(part, int):
                ids.append(part)
            else:
                ids += self.tokenizer.encode(unmark(part, marker))
        return ids


def read_template(metadata: Mapping[str, Any], tokenizer: Tokenizer) -> tuple[ChatTemplate | None, str | None]:
    """The chat template, or why there is none."""
    source = metadata.get("tokenizer.chat_template")
    if source is None:
        return None, NO_TEMPLATE
    if not isinstance(source, str):
        return None, f"tokenizer.chat_template is no text but {type(source).__name__}"
    eos = metadata.get("tokenizer.ggml.eos_token_id")
    try:
        template = ChatTemplate(
            source, bos_token=tokenizer.spelling(tokenizer.bos_id), eos_token=tokenizer.spelling(eos)
        )
    except TemplateProblem as problem:
        return None, f"this model's chat template cannot be compiled: {problem}"
    return template, None


def check_strings(messages: Sequence[Message]) -> None:
    """Raise PromptError, naming the message, where a string holds half a surrogate pair."""
    for index, message in enumerate(messages):
        for text in strings(message):
            try:
                check_unicode(text)
            except PromptError as error:
                raise PromptError(f"messages[{index}]: {error.message}") from None
