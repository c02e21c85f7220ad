"""Fields of a request that Puma does not act on: which are refused, which have no effect, which are unknown."""

from typing import Any

import msgspec

from puma.actors.errors import BadRequest
from puma.daemon.wire.decode import value_of

NEUTRAL: dict[str, tuple[Any, ...]] = {
    # several answers
    "n": (1,),
    "best_of": (1,),
    "use_beam_search": (False,),
    "length_penalty": (1, 1.0),
    # how tokens are chosen
    "presence_penalty": (0, 0.0),
    "frequency_penalty": (0, 0.0),
    "repetition_penalty": (1, 1.0),
    "logit_bias": ({},),
    "typical_p": (1, 1.0),
    "top_a": (0, 0.0),
    "allowed_token_ids": ([],),
    "bad_words": ([],),
    # when the answer ends
    "min_tokens": (0,),
    "ignore_eos": (False,),
    "stop_token_ids": ([],),
    "include_stop_str_in_output": (False,),
    # what the answer must look like
    "response_format": ({"type": "text"},),
    "structured_outputs": ({},),
    "guided_json": (),
    "guided_regex": (),
    "guided_choice": (),
    "guided_grammar": (),
    "grammar": ("",),
    "json_schema": ({},),
    "modalities": (["text"],),
    "audio": (),
    "skip_special_tokens": (True,),
    "prompt_logprobs": (),
    # what the model may do
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "web_search_options": (),
    # what the prompt is
    "echo": (False,),
    "suffix": ("",),
    "prompt_embeds": (),
    "truncate_prompt_tokens": (),
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
    "chat_template": (),
    "chat_template_kwargs": ({},),
}
"""Known fields that would change the answer, with the values that ask for nothing; null always does."""

WITHOUT_EFFECT = frozenset(
    {
        "metadata",
        "parallel_tool_calls",
        "prediction",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning_effort",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
        "verbosity",
    }
)
"""Known fields that do not change the answer of a model such as these."""


def refuse_unsupported(members: dict[str, msgspec.Raw]) -> None:
    """Raises BadRequest that names a field which would change the answer and is not supported."""
    for name in members.keys() & NEUTRAL.keys():
        value = value_of(members[name])
        allowed = NEUTRAL[name]
        if value is None or any(type(value) is type(other) and value == other for other in allowed):
            continue
        instead = " or ".join(msgspec.json.encode(other).decode() for other in allowed)
        advice = f"leave it out or send {instead}" if instead else "leave it out"
        raise BadRequest(f"{name}: not supported; {advice}", param=name)


def unknown(members: dict[str, msgspec.Raw], struct: type[msgspec.Struct]) -> set[str]:
    """Names that mean nothing to Puma."""
    return members.keys() - set(struct.__struct_fields__) - NEUTRAL.keys() - WITHOUT_EFFECT
