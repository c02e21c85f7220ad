"""Why a model cannot be used, or a prompt cannot be made for it.

ModelFileError     the file is damaged, not a model, or of a kind that is not supported
PromptError        the text or the messages cannot become a prompt; whoever wrote them must change them
"""


class ModelFileError(Exception):
    """A model file cannot be used. The message names the file, the place, what was expected and found."""


class PromptError(Exception):
    """A prompt cannot be made. `message` is for the person who sent the text: no path, no stack."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
