"""The beginning of `puma serve`: what it takes for itself before it loads anything.

check the configuration    before this module is reached
take lock and port         so that a second daemon fails at once
the rest                   daemon/process.py
"""

from pathlib import Path

from puma.config.configuration import Configuration
from puma.daemon.control.lock import Lock
from puma.daemon.control.paths import private_folder, socket_path
from puma.daemon.listener import take_port


def serve_model(path: Path, name: str, config: Configuration) -> int:
    """Serve until told to stop; returns the exit status.

    Raises CannotListen, AlreadyRunning, UnusablePath, ModelFileError or ConfigError, alone or in a group.
    """
    control = socket_path(config.server.control_socket)
    private_folder(control.parent)
    lock = Lock(control)
    try:
        with take_port(config.server.host, config.server.port) as port:
            # Importing the engine takes seconds; an address in use is told before.
            from puma.daemon.process import Daemon, serve

            return serve(Daemon(path, name, config, port, control, lock))
    finally:
        control.unlink(missing_ok=True)
        lock.remove()
