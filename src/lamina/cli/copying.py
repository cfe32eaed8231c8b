"""The command that moves memories from one backend to another."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lamina.cli.command import command
from lamina.cli.session import Session
from lamina.cli.values import counted
from lamina.errors import ConfigError

if TYPE_CHECKING:
    from lamina.settings import MemoryConfig

__all__ = ["register"]

_FROM_ENVIRONMENT: Final = "env:"
_OPTION_HELP: Final = "What else that backend takes, NAME=VALUE; a value env:VARIABLE is read from the environment."


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "copy",
        examples=[
            "lamina copy --from ./lamina-data/lamina.db --to postgresql://mira@db.example/app",
            "lamina copy --from redis://localhost --to qdrant:http://localhost:6333 --to-option api_key=env:QDRANT_KEY",
            "lamina copy --from lamina.db --to dynamodb --to-option region=eu-west-1 --table lamina_chunks",
        ],
        scoped=False,
    )(copy)


async def copy(
    session: Session,
    *,
    from_: Annotated[str, typer.Option("--from", help="Where they are: a path, a URL, NAME or NAME:URL of a backend.")],
    to: Annotated[str, typer.Option("--to", help="Where they go, written in the same way.")],
    from_option: Annotated[list[str] | None, typer.Option("--from-option", help=_OPTION_HELP)] = None,
    to_option: Annotated[list[str] | None, typer.Option("--to-option", help=_OPTION_HELP)] = None,
    table: Annotated[str, typer.Option("--table", help="The collection; that of documents is lamina_chunks.")] = (
        "lamina_memories"
    ),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Let the source win where an id differs.")] = False,
    revive: Annotated[bool, typer.Option("--revive", help="Take what was deleted at the target, too.")] = False,
) -> None:
    """Copy a tenant's memories to another backend, with their ids, times, counts and vectors, and check them there.

    Stopped or killed, it goes on when it is run again. What the settings in force say of a backend, such as its
    keys, holds for it here too. Threads and documents are not memories: they stay where `state_url` says.
    """
    from contextlib import AsyncExitStack

    from lamina.cli import output
    from lamina.importers.copying import copy_memories
    from lamina.memory.factory import adapter_of

    places = (
        _place(session, from_, from_option or (), table=table, flag="--from"),
        _place(session, to, to_option or (), table=table, flag="--to"),
    )
    if places[0] == places[1]:
        raise typer.BadParameter("it is the same place as --from", param_hint="--to")
    source, target = (adapter_of(place) for place in places)
    async with AsyncExitStack() as stack:
        for adapter in (source, target):
            stack.push_async_callback(adapter.close)
            await adapter.initialize()
        with output.progress_bar("Copying") as progress:
            tenant = session.settings.config.memory.tenant
            report = await copy_memories(source, target, tenant, overwrite=overwrite, revive=revive, progress=progress)
    if session.as_json:
        output.print_json(dataclasses.asdict(report))
        return
    typer.echo(f"{counted(report.written)} copied, {report.present} were there already; checksum {report.checksum}.")
    if report.erased:
        output.note(f"{report.erased} were deleted there, or their owner erased, and left out; --revive takes them.")


def _place(session: Session, location: str, options: Sequence[str], *, table: str, flag: str) -> MemoryConfig:
    from pathlib import Path

    from lamina.settings import MemoryConfig
    from lamina.settings.sources import place_of

    said: dict[str, Any] = _backend(location) or place_of(location, flag)
    settings = session.settings.config.memory
    named = MemoryConfig(**{key: value for key, value in said.items() if value is not None}, table=table)
    given = dict(_option(each, flag) for each in options)
    if settings.adapter_name() == named.adapter_name() and settings.url in {None, named.url}:
        given = settings.options | given
    if flag == "--from" and named.path is not None and not Path(named.path).is_file():
        raise ConfigError(flag, f"there is no database {named.path}", "Give the path of one.")
    return named.model_copy(update={"options": given})


def _backend(location: str) -> dict[str, Any] | None:
    """`NAME`, `NAME:URL` or `sqlite:PATH` as settings; None if it is a path or a plain URL."""
    from lamina.registry import adapter_names

    name, _, rest = location.partition(":")
    if name not in adapter_names() or rest.startswith("//"):
        return None
    return {"provider": name, "path" if name == "sqlite" else "url": rest or None}


def _option(text: str, flag: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter("write NAME=VALUE", param_hint=f"{flag}-option")
    if value.startswith(_FROM_ENVIRONMENT):
        variable = value.removeprefix(_FROM_ENVIRONMENT)
        if variable not in os.environ:
            raise ConfigError(f"{flag}-option {name}", f"the environment has no {variable}", "Set it.")
        return name, os.environ[variable]
    return name, int(value) if value.isascii() and value.isdigit() else value
