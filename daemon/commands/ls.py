"""`puma ls`."""

import argparse
from collections.abc import Sequence

from puma.config.sizes import format_size
from puma.daemon.commands.arguments import refuse_rest
from puma.daemon.exits import Exit
from puma.models.store.catalogue import CATALOGUE
from puma.models.store.installed import installed


def run(arguments: argparse.Namespace, unread: Sequence[str]) -> int:
    refuse_rest(unread)
    here = installed()
    damaged = {entry.name for entry in CATALOGUE if not entry.is_here}
    rows = [
        (
            model.name,
            format_size(model.bytes),
            f"incomplete: puma pull {model.name}" if model.name in damaged else "here",
        )
        for model in here
    ]
    names = {model.name for model in here}
    rows += [
        (entry.name, format_size(entry.bytes), f"puma pull {entry.name}")
        for entry in CATALOGUE
        if entry.name not in names
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, size, state in rows:
        print(f"{name:<{widths[0]}}  {size:>{widths[1]}}  {state}", flush=True)
    return Exit.OK
