"""`puma config show` and `puma config schema`."""

import argparse
import json
from collections.abc import Sequence

from puma.config.schema import json_schema
from puma.config.show import rows_of, show_text, to_toml
from puma.daemon.commands.arguments import configuration, refuse_rest
from puma.daemon.exits import Exit


def run(arguments: argparse.Namespace, unread: Sequence[str]) -> int:
    if arguments.what == "schema":
        refuse_rest(unread)
        print(json.dumps(json_schema(), indent=2), flush=True)
        return Exit.OK
    config = configuration(arguments, unread, ("engine", "server", "log"))
    print(
        to_toml(config) if arguments.toml else show_text(rows_of(config)),
        end="" if arguments.toml else "\n",
        flush=True,
    )
    return Exit.OK
