"""`puma serve`."""

import argparse
from collections.abc import Sequence

from puma.daemon.boot import serve_model
from puma.daemon.commands.arguments import both_configs, model_name
from puma.daemon.log import start_logging
from puma.models.store.resolve import resolve


def run(arguments: argparse.Namespace, unread: Sequence[str]) -> int:
    engine, server = both_configs(arguments, unread)
    start_logging(server.log_level)
    return serve_model(
        resolve(arguments.model), server.served_model_name or model_name(arguments.model), engine, server
    )
