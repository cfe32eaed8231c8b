"""The command that serves over HTTP: serve."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.command import command
from lamina.cli.session import Session
from lamina.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    from lamina.settings import LaminaConfig

__all__ = ["register"]

Host = Annotated[str | None, typer.Option("--host", help="The address to listen on.", show_default=False)]
Port = Annotated[
    int | None, typer.Option("--port", min=0, max=65_535, help="The port; 0 is any free one.", show_default=False)
]
Uds = Annotated[
    Path | None,
    typer.Option("--uds", help="A socket in the file system, in place of host and port.", show_default=False),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        max=64,
        help="How many processes serve; each has rate limits and metrics of its own.",
        show_default=False,
    ),
]
Mcp = Annotated[bool | None, typer.Option("--mcp/--no-mcp", help="Serve MCP at /mcp too.", show_default=False)]
LogFormat = Annotated[str | None, typer.Option("--log-format", help="text or json.", show_default=False)]
Inherited = Annotated[str | None, typer.Option("--inherited", help="For the workers themselves.", hidden=True)]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "serve",
        examples=[
            "lamina serve",
            "lamina serve --port 9000 --log-format json",
            "lamina serve --host 0.0.0.0 --workers 4",
            "lamina serve --mcp",
        ],
        scoped=False,
    )(serve)


def serve(
    session: Session,
    *,
    host: Host = None,
    port: Port = None,
    uds: Uds = None,
    workers: Workers = None,
    mcp: Mcp = None,
    log_format: LogFormat = None,
    inherited: Inherited = None,
) -> None:
    """Serve over HTTP until stopped by Ctrl-C or SIGTERM; then finish what was begun, and close.

    As long as no token was ever made by `lamina token create`, everybody on this machine may do everything, and
    the server listens on no address that other machines reach. Logs go to stderr. Needs the extra `server`.
    """
    said = {"host": host, "port": port, "uds": uds, "workers": workers, "mcp": mcp, "log_format": log_format}
    session.flags = {**session.flags, "server": {key: value for key, value in said.items() if value is not None}}
    try:
        import uvicorn as _uvicorn  # noqa: F401 - looked for, so that its absence gets a remedy
    except ImportError as error:
        raise MissingExtra("`lamina serve`", "server") from error
    from lamina import server as _server  # noqa: F401 - likewise

    config = session.serving_config()
    if inherited is not None:
        _serve_inherited(config, inherited)
    elif config.server.workers == 1:
        _serve_alone(session, config)
    else:
        _serve_with_workers(session, config)


def _serve_alone(session: Session, config: LaminaConfig) -> None:
    import asyncio

    from lamina.server.listening import listen
    from lamina.server.running import serve as serve_on

    asks = asyncio.run(_asks_for_tokens(config))
    with _closing(listen(config.server, needs_token=asks), config) as listener:
        asyncio.run(serve_on(config, listener, ready=lambda asks: _announce(session, listener, needs_token=asks)))


def _serve_with_workers(session: Session, config: LaminaConfig) -> None:
    import asyncio

    from lamina.server.listening import listen
    from lamina.server.workers import run_workers

    if sys.platform == "win32":
        raise ConfigError("server.workers", "several cannot share a socket on this system", "Use 1.")
    if config.memory.adapter_name() == "memory" or str(config.memory.path) == ":memory:":
        raise ConfigError("server.workers", "each would have a memory of its own", "Use 1, or a database they share.")
    asks = asyncio.run(_asks_for_tokens(config))
    with _closing(listen(config.server, needs_token=asks), config) as listener:
        run_workers(
            sys.argv[1:],
            listener,
            count=config.server.workers,
            graceful=config.server.graceful_timeout,
            ready=lambda: _announce(session, listener, needs_token=asks),
        )


def _serve_inherited(config: LaminaConfig, inherited: str) -> None:
    import asyncio

    from lamina.server.running import serve as serve_on
    from lamina.server.sharing import ConnectionCounts, Place

    descriptor, lifeline, counts, number = map(int, inherited.split(","))
    place = Place(ConnectionCounts(counts), number)
    with socket.socket(fileno=descriptor) as listener:
        asyncio.run(serve_on(config, listener, ready=lambda _: None, lifeline=lifeline, place=place))


async def _asks_for_tokens(config: LaminaConfig) -> bool:
    """Whether tokens are needed; makes the database that the workers share, and refuses a place that is not safe."""
    from lamina.kernel.tenants import TenantKernels
    from lamina.server.listening import check_place
    from lamina.server.running import needs_token

    async with TenantKernels(config) as kernels:
        asks = await needs_token(config.server, kernels.server)
    check_place(config.server, needs_token=asks)
    return asks


@contextlib.contextmanager
def _closing(listener: socket.socket, config: LaminaConfig) -> Iterator[socket.socket]:
    """Close the listener in the end, and remove what it has made in the file system."""
    try:
        yield listener
    finally:
        listener.close()
        if config.server.uds is not None:
            config.server.uds.unlink(missing_ok=True)


def _announce(session: Session, listener: socket.socket, *, needs_token: bool) -> None:
    """Say where, and to whom."""
    from lamina.server.listening import address_of

    address = address_of(listener)
    if session.as_json:
        from lamina.cli.output import print_json

        print_json({"address": address, "needs_token": needs_token})
    else:
        whom = "a token is needed" if needs_token else "no token is needed: everybody on this machine may do everything"
        typer.echo(f"Serving on {address}; {whom}.")
    sys.stdout.flush()
