"""What all commands have in common: the options on whose memories and where, and how help is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, get_type_hints

import typer

from lamina.cli.session import Session
from lamina.cli.warnings_shown import warnings_shown

__all__ = ["SHARED", "command", "group", "group_command", "show_help_alone"]

F = TypeVar("F", bound=Callable[..., Any])

Owner = Annotated[str | None, typer.Option("--owner", "-u", help="Whose memories.", show_default=False)]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="The namespace.", show_default=False)]
Tenant = Annotated[str | None, typer.Option("--tenant", help="The tenant.", show_default=False)]
Database = Annotated[str | None, typer.Option("--db", help="The database, a path or a URL.", show_default=False)]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="The folder that holds lamina.db.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

SHARED: Final[dict[str, tuple[Any, Any]]] = {
    "owner": (Owner, None),
    "namespace": (Namespace, None),
    "tenant": (Tenant, None),
    "db": (Database, None),
    "data_dir": (DataDir, None),
    "as_json": (AsJson, False),
}
"""Name of each option that every command has → its annotation and default."""

_HIDDEN: Final[dict[str, tuple[Any, Any]]] = {
    "owner": (Annotated[str | None, typer.Option("--owner", "-u", help="Refused here.", hidden=True)], None),
    "namespace": (Annotated[str | None, typer.Option("--namespace", "-n", help="Refused here.", hidden=True)], None),
}
"""For commands on a whole tenant, or on what has no namespace: not offered, but taken, to be refused with reason."""


def command(
    app: typer.Typer,
    name: str,
    *,
    examples: Sequence[str],
    scoped: bool = True,
    namespaced: bool = True,
    tells: bool = False,
) -> Callable[[F], F]:
    """Register a function, sync or async, that takes a `Session` and its own parameters, as a command.

    The shared options are added to its own and reach it as the session. A command that is not `scoped` is
    about a whole tenant, and refuses an owner and a namespace; one that is not `namespaced` refuses the latter.
    One that `tells` what is wrong in its answer shows no warnings beside it. Its docstring is the help text, the
    examples stand below it.
    """

    def register(function: F) -> F:
        refused = (() if scoped else ("owner", "namespace")) or (() if namespaced else ("namespace",))
        app.command(name, help=_help(function, examples))(_runner(function, name, refused, tells=tells))
        return function

    return register


def group_command(app: typer.Typer, name: str, *, examples: Sequence[str]) -> Callable[[F], typer.Typer]:
    """Register a function, as `command` does, as what a group of commands does alone; returns the group.

    Options of its own that stand before the name of another command of the group are refused.
    """

    def register(function: F) -> typer.Typer:
        made = typer.Typer(rich_markup_mode=None)
        run = _runner(function, name, ())

        def start(context: typer.Context, **arguments: Any) -> Any:
            if context.invoked_subcommand is None:
                return run(**arguments)
            given = [each.opts[0] for each in context.command.params if _is_given(context, each)]
            if given:
                problem = f"belongs behind `{context.invoked_subcommand}`"
                raise typer.BadParameter(problem, param_hint=given[0])
            return None

        first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in inspect.signature(run).parameters.values()]
        start.__signature__ = inspect.Signature([first, *own])  # type: ignore[attr-defined]
        start.__annotations__ = {each.name: each.annotation for each in (first, *own)}
        made.callback(invoke_without_command=True, help=_help(function, examples))(start)
        app.add_typer(made, name=name)
        return made

    return register


def _is_given(context: typer.Context, parameter: Any) -> bool:
    source = context.get_parameter_source(parameter.name)
    return source is not None and source.name == "COMMANDLINE"


def _runner(
    function: Callable[..., Any], name: str, refused: Sequence[str], *, tells: bool = False
) -> Callable[..., Any]:
    """What the command line calls: with the shared options beside the function's own."""
    own = list(inspect.signature(function).parameters.values())[1:]
    hints = get_type_hints(function, include_extras=True)
    parameters = [each.replace(annotation=hints[each.name]) for each in own]
    shared = SHARED | {key: _HIDDEN[key] for key in refused}
    parameters += [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for key, (annotation, default) in shared.items()
    ]

    def run(**arguments: Any) -> Any:
        session = Session(**{key: arguments.pop(key) for key in SHARED})
        if any(getattr(session, key) is not None for key in refused):
            problem = f"it is not about one {' or '.join(refused)}"
            raise typer.BadParameter(problem, param_hint=f"lamina {name}")
        with warnings_shown(shown=not tells):
            result = function(session, **arguments)
            if not inspect.iscoroutine(result):
                return result
            import asyncio

            return asyncio.run(result)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def group(help: str) -> typer.Typer:
    """A group of commands, which alone shows its help."""
    made = typer.Typer(help=help, rich_markup_mode=None)

    @made.callback(invoke_without_command=True)
    def start(context: typer.Context) -> None:
        show_help_alone(context)

    return made


def show_help_alone(context: typer.Context) -> None:
    """Print what there is, if no command was named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def _help(function: Callable[..., Any], examples: Sequence[str]) -> str:
    shown = "\n".join(f"  {example}" for example in examples)
    return f"{inspect.getdoc(function)}\n\n\b\nExamples:\n{shown}"
