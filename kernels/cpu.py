"""Which instructions the kernels may use: found at import, or forced by PUMA_KERNELS."""

import os
import platform

from llvmlite import binding

from puma.config.errors import ConfigError, Problem

LOWERINGS = ("avx512_vnni", "avx2", "portable")
"""Instruction sets that have a file in kernels/instructions, fastest first."""

REQUIRED_FEATURES = {
    "avx512_vnni": ("avx512f", "avx512bw", "avx512vl", "avx512vnni"),
    "avx2": ("avx2", "fma", "f16c"),
    "portable": (),
}

ENVIRONMENT_NAME = "PUMA_KERNELS"


def available_lowerings() -> tuple[str, ...]:
    """The lowerings that this CPU can run, fastest first."""
    features = binding.get_host_cpu_features()
    return tuple(name for name in LOWERINGS if all(features.get(feature, False) for feature in REQUIRED_FEATURES[name]))


def choose_lowering(wanted: str | None) -> str:
    """The lowering to use. Raises ConfigError when `wanted` is unknown or this CPU does not have it."""
    available = available_lowerings()
    if not wanted or wanted.lower() == "auto":
        return available[0]
    if wanted.lower() not in available:
        allowed = f"this CPU has {', '.join(available)}; auto takes the first"
        raise ConfigError((Problem(key=ENVIRONMENT_NAME, value=wanted, allowed=allowed, source="environment"),))
    return wanted.lower()


LOWERING = choose_lowering(os.environ.get(ENVIRONMENT_NAME))
"""Fixed for the life of the process: compiled code cannot change its instructions."""

CPU_NAME = binding.get_host_cpu_name()
MACHINE = platform.machine()
