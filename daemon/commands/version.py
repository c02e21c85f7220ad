"""`puma version`."""

import argparse
from collections.abc import Sequence

from puma.daemon.commands.arguments import refuse_rest
from puma.daemon.exits import Exit
from puma.daemon.version import version


def run(arguments: argparse.Namespace, unread: Sequence[str]) -> int:
    refuse_rest(unread)
    print(f"puma {version()}", flush=True)
    return Exit.OK
