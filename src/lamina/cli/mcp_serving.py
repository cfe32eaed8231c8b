"""Commands on MCP: serve memories to agents, and tell their clients of it."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli import mcp_clients
from lamina.cli.command import command, group_command
from lamina.cli.session import Session
from lamina.errors import ConfigError, InvalidInput

if TYPE_CHECKING:
    from lamina.mcp import Binding, BindingOf

__all__ = ["register"]

_GREATEST_PORT = 65_535


class Profile(StrEnum):
    """The sets of tools."""

    DEFAULT = "default"
    KNOWLEDGE_GRAPH = "knowledge-graph"
    CHATGPT = "chatgpt"
    FILES = "files"


AProfile = Annotated[Profile, typer.Option("--profile", help="Which tools: see docs/mcp.md.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Offer no tool that changes anything.")]
Http = Annotated[
    str | None,
    typer.Option(
        "--http", metavar="HOST:PORT", help="Serve over HTTP on this machine, in place of stdio.", show_default=False
    ),
]
TokenEnv = Annotated[
    str | None,
    typer.Option(
        "--token-env", metavar="NAME", help="With --http: the variable with the token to ask for.", show_default=False
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    serving = group_command(
        app,
        "mcp",
        examples=[
            "lamina mcp --owner mira",
            "lamina mcp --owner mira --read-only --profile chatgpt",
            "lamina mcp --http 127.0.0.1:8766 --token-env MEMORY_TOKEN",
        ],
    )(serve)
    command(
        serving,
        "install",
        examples=[
            "lamina mcp install --client claude-code --owner mira",
            "lamina mcp install --client codex --print",
            "lamina mcp install --client vscode --project --dry-run",
        ],
    )(mcp_clients.install)
    command(
        serving,
        "uninstall",
        examples=["lamina mcp uninstall --client cursor", "lamina mcp uninstall --client vscode --project"],
    )(mcp_clients.uninstall)


async def serve(
    session: Session,
    *,
    profile: AProfile = Profile.DEFAULT,
    read_only: ReadOnly = False,
    http: Http = None,
    token_env: TokenEnv = None,
) -> None:
    """Serve memories to an agent by the Model Context Protocol, over stdin and stdout.

    Whose memories is said here, never by the agent: those of --owner (else the default owner), in --namespace if it
    is given. Needs `pip install 'lamina[mcp]'`.
    """
    from lamina.mcp import Binding, create_mcp_server, serve_stdio
    from lamina.mcp.local_http import serve_http

    if session.as_json:
        raise typer.BadParameter("has no meaning here: the protocol is JSON already", param_hint="--json")
    if token_env is not None and http is None:
        raise typer.BadParameter("needs --http beside it", param_hint="--token-env")
    place = None if http is None else _place(http)
    tenant = session.settings.config.memory.tenant
    binding = Binding(tenant=tenant, owner=session.writer, namespace=session.namespace, read_only=read_only)
    asked = _asked(token_env, binding)
    async with session.kernel(creates=not read_only) as kernel:
        server = create_mcp_server(kernel, binding=binding, profile=profile)
        if place is None:
            await serve_stdio(server)
        else:
            await serve_http(server, *place, binding_of=asked, tell=_tell)


def _tell(address: str) -> None:
    from lamina.cli.output import note

    note(f"Serving MCP on {address}")


def _asked(token_env: str | None, binding: Binding) -> BindingOf | None:
    """Who is served: everybody on this machine, or whoever has the token."""
    from lamina.mcp import bearer

    if token_env is None:
        return None
    token = os.environ.get(token_env, "")
    if not token.strip() or not token.isascii() or token != token.strip():
        problem = f"the variable {token_env} holds no token"
        raise ConfigError("--token-env", problem, "Set it to a long random text of plain characters.")
    return bearer(token, binding)


def _place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > _GREATEST_PORT:
        raise InvalidInput("--http", f"{text!r} is no HOST:PORT", "Give one such as 127.0.0.1:8766.")
    from lamina.settings.server import is_loopback

    if not is_loopback(host):
        remedy = "Use 127.0.0.1, ::1 or localhost; `lamina serve` serves other machines, with tokens."
        raise InvalidInput("--http", f"{host} is not of this machine alone", remedy)
    return host.strip("[]"), int(port)
