"""What is shown while a model loads: a bar on a terminal, one line per stage elsewhere. On stderr."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

Report = Callable[[str, float], None]
"""Called with a stage and the part of it that is done, 0 to 1; from any thread."""

NAMES = {"weights": "loading weights", "kernels": "compiling kernels"}


@contextmanager
def loading() -> Generator[Report]:
    """A place to report to while it lasts."""
    if sys.stderr.isatty():
        with _bars() as report:
            yield report
    else:
        yield _lines()


@contextmanager
def _bars() -> Generator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        def report(stage: str, part: float) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(NAMES.get(stage, stage), total=1.0)
            progress.update(tasks[stage], completed=part)

        yield report


def _lines() -> Report:
    begun: set[str] = set()

    def report(stage: str, part: float) -> None:
        if stage not in begun:
            begun.add(stage)
            print(f"puma: {NAMES.get(stage, stage)}", file=sys.stderr, flush=True)

    return report
