"""Where a server listens: an address of the network, or a socket in the file system."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import Final

from lamina.errors import ConfigError
from lamina.settings import ServerConfig
from lamina.settings.server import is_loopback

__all__ = ["address_of", "check_place", "listen"]

_BACKLOG: Final = 2048
_OWNER_ONLY: Final = 0o177


def check_place(settings: ServerConfig, *, needs_token: bool) -> None:
    """Refuse to let anybody in from other machines who has no token.

    Raises:
        ConfigError: no token is asked for, and the host is not of this machine alone.
    """
    if needs_token or settings.uds is not None or is_loopback(settings.host):
        return
    problem = f"{settings.host} is reached from other machines, and there is no token to ask for"
    remedy = "Make one with `lamina token create`, set up server.jwt, or use the host 127.0.0.1."
    raise ConfigError("server.host", problem, remedy)


def listen(settings: ServerConfig, *, needs_token: bool) -> socket.socket:
    """A socket that listens there. Without tokens, one in the file system is its owner's alone.

    Raises:
        ConfigError: it cannot listen there.
    """
    try:
        if settings.uds is not None:
            return _listen_in_file_system(settings.uds, is_private=not needs_token)
        return _listen_on_network(settings)
    except OSError as error:
        field = "server.host" if settings.uds is None else "server.uds"
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror or error}"
        place = settings.uds or f"{settings.host}:{settings.port}"
        raise ConfigError(
            field, f"{place} {reason}", "Choose another place, such as --port 0 for any free port."
        ) from error


def address_of(listener: socket.socket) -> str:
    """As a client is told it."""
    if listener.family not in {socket.AF_INET, socket.AF_INET6}:
        return f"unix:{listener.getsockname()}"
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen_on_network(settings: ServerConfig) -> socket.socket:
    host = settings.host.strip("[]")
    found = socket.getaddrinfo(host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]
    return socket.create_server(address, family=family, backlog=_BACKLOG)


def _listen_in_file_system(path: Path, *, is_private: bool) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(_OWNER_ONLY) if is_private else None
    try:
        _remove_dead(path)
        listener.bind(str(path))
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    finally:
        if before is not None:
            os.umask(before)
    return listener


def _remove_dead(path: Path) -> None:
    """What a server that was killed left; another one that lives is not touched."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
