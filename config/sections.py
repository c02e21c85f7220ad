"""The sections of a configuration, and every name by which a key is known or was meant."""

import difflib
from collections.abc import Iterable

import msgspec

from puma.config.engine import EngineConfig
from puma.config.log import LogConfig
from puma.config.options import Option, options_of
from puma.config.server import ServerConfig

SECTIONS: dict[str, type[msgspec.Struct]] = {"engine": EngineConfig, "server": ServerConfig, "log": LogConfig}

OPTIONS: tuple[Option, ...] = tuple(
    option for section, struct in SECTIONS.items() for option in options_of(struct, section)
)

MEANT = {
    "log_level": "log.level",
    "api_keys": "server.api_key",
    "bind": "server.host",
    "address": "server.host",
    "alias": "server.served_model_name",
    "batch_size": "engine.max_step_tokens",
    "block_size": "engine.tokens_per_block",
    "cache_type_k": "engine.kv_dtype",
    "cache_type_v": "engine.kv_dtype",
    "ctx_size": "engine.context_length",
    "enable_prefix_caching": "engine.prefix_caching",
    "kv_cache_dtype": "engine.kv_dtype",
    "max_model_len": "engine.context_length",
    "max_num_batched_tokens": "engine.max_step_tokens",
    "max_num_seqs": "engine.max_batch_size",
    "max_tokens": "engine.default_max_tokens",
    "n_ctx": "engine.context_length",
    "n_parallel": "engine.max_batch_size",
    "n_predict": "engine.default_max_tokens",
    "n_threads": "engine.threads",
    "num_ctx": "engine.context_length",
    "num_parallel": "engine.max_batch_size",
    "num_predict": "engine.default_max_tokens",
    "num_thread": "engine.threads",
    "parallel": "engine.max_batch_size",
    "ubatch_size": "engine.max_step_tokens",
}
"""What a key is called here that had another name before, or has one in other servers (vLLM, llama.cpp, Ollama)."""

CLOSE = 0.7
"""How alike two names must be to be taken for each other."""


def options_in(sections: Iterable[str]) -> tuple[Option, ...]:
    """The options of these sections."""
    wanted = set(sections)
    return tuple(option for option in OPTIONS if option.section in wanted)


def meant(name: str, options: Iterable[Option]) -> Option | None:
    """The option that a wrong name stands for most likely, by whatever spelling; None when nothing is near."""
    known = {option.name: option for option in options}
    asked = name.lower().replace("-", "_").lstrip("_")
    by_path = {option.path: option for option in known.values()}
    if asked in MEANT:
        return by_path.get(MEANT[asked])
    near = difflib.get_close_matches(asked, known, n=1, cutoff=CLOSE)
    return known[near[0]] if near else None
