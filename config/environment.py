"""Environment variables: `PUMA_MEMORY_POOL_BYTES=200MiB`, one for every option. An empty one counts as unset."""

import re
from collections.abc import Mapping

from puma.config.errors import Problem
from puma.config.sections import OPTIONS, meant
from puma.config.setting import ENVIRONMENT, Setting

PREFIX = "PUMA_"
FILE_VARIABLE = "PUMA_CONFIG"

OTHERS = {FILE_VARIABLE, "PUMA_COMPILE_FOLDER", "PUMA_HOME", "PUMA_KERNELS", "PUMA_TEST_MODEL"}
"""Variables that are no options."""

# What Kubernetes sets in every container for a service that is called puma.
SERVICE_LINK = re.compile(r"PUMA_(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")
SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://\S+")


def settings_from_environment(environment: Mapping[str, str]) -> tuple[list[Setting], list[Problem]]:
    """The settings, and a problem for each variable that looks like one and is none."""
    options = {option.variable: option for option in OPTIONS}
    settings: list[Setting] = []
    problems: list[Problem] = []
    for name, text in sorted(environment.items()):
        if not name.startswith(PREFIX) or name in OTHERS or SERVICE_LINK.fullmatch(name) or not text:
            continue
        option = options.get(name)
        if option is None:
            near = meant(name.removeprefix(PREFIX), OPTIONS)
            hint = f"; did you mean {near.variable}?" if near else ""
            problems.append(Problem(key=name, value=text, allowed=f"no such variable{hint}", source=ENVIRONMENT))
        elif name == "PUMA_PORT" and SERVICE_ADDRESS.fullmatch(text):
            allowed = (
                f"{option.form}; this one is Kubernetes' own, for a service called puma: "
                "set enableServiceLinks: false, or rename the service"
            )
            problems.append(Problem(key=name, value=text, allowed=allowed, source=ENVIRONMENT))
        else:
            settings.append(Setting(option, text, name, ENVIRONMENT))
    return settings, problems
