"""`puma serve`."""

import argparse
from collections.abc import Sequence

from puma.daemon.boot import serve_model
from puma.daemon.commands.arguments import configuration, model_name
from puma.daemon.log import start_logging
from puma.models.store.resolve import resolve


def run(arguments: argparse.Namespace, unread: Sequence[str]) -> int:
    config = configuration(arguments, unread, ("engine", "server", "log"))
    start_logging(config.log.level)
    name = config.server.served_model_name or model_name(arguments.model)
    return serve_model(resolve(arguments.model), name, config)
