"""Plain functions with type hints as tools of an agent."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import json
import logging
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lamina.agents.tool_context import ToolContext
from lamina.domain.text import clean
from lamina.errors import InvalidInput, InvalidType, MissingExtra
from lamina.providers.host_calls import call_host

if TYPE_CHECKING:
    from pydantic_ai import Tool as LoopTool

__all__ = ["Tool", "read_tools"]

MAX_RESULT_CHARS: Final = 100_000
"""A longer result is cut there, and says so: one call must not fill the model's window."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call.

    `schema` is the JSON schema of its arguments, made from its type hints and docstring; parameters annotated
    `ToolContext` are not in it.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    function: Callable[..., Any] = field(repr=False)
    loop_tool: LoopTool[ToolContext] = field(repr=False, compare=False)
    """The same for the library that runs the loop."""

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> Tool:
        """The tool that a function, sync or async, is.

        Raises:
            MissingExtra: pydantic-ai, which runs the loop of calls, is not installed.
            InvalidType: it is no named function, or a parameter has no type hint.
            InvalidInput: a type hint cannot be put into a schema.
        """
        if importlib.util.find_spec("pydantic_ai") is None:
            raise MissingExtra("An agent with tools", "pydantic-ai")
        from pydantic_ai import Tool as LoopTool
        from pydantic_ai.exceptions import UserError
        from pydantic_core import PydanticOmit, SchemaError

        caller = _caller(function)
        try:
            made = LoopTool(caller, takes_ctx=True, max_retries=3)
        except (UserError, SchemaError, PydanticOmit, TypeError, ValueError) as error:
            problem = f"the parameters of {caller.__name__!r} have no schema: {error}"
            raise InvalidInput("tools", problem, "Use type hints that JSON can carry.") from error
        except RuntimeError as error:  # pydantic's complaints about a type are of this kind
            problem = f"the parameters of {caller.__name__!r} have no schema: {type(error).__name__}"
            raise InvalidInput("tools", problem, "Use type hints that JSON can carry.") from error
        schema = made.function_schema.json_schema
        return cls(caller.__name__, made.description or "", schema, function, made)


def read_tools(given: Sequence[Tool | Callable[..., Any]]) -> tuple[Tool, ...]:
    """The tools, functions made ones; each name once."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise InvalidType("tools", f"must be a list, not {type(given).__name__}", "Give a list of functions.")
    tools: dict[str, Tool] = {}
    for each in given:
        tool = each if isinstance(each, Tool) else Tool.from_function(each)
        if tool.name in tools:
            raise InvalidInput("tools", f"the name {tool.name!r} stands there twice", "Rename one of the functions.")
        tools[tool.name] = tool
    return tuple(tools.values())


def _caller(function: Callable[..., Any]) -> Callable[..., Any]:
    """What the loop calls: takes the context first, then what the model gives; returns text and never raises."""
    from pydantic_ai import RunContext

    name = getattr(function, "__name__", "")
    if not inspect.isroutine(function) or not name.isidentifier():
        raise InvalidType("tools", f"{function!r:.60} is no function with a name", "Give a function made with def.")
    hints, signature = _hints(function, name)
    wants_context = [each for each in signature.parameters if hints[each] is ToolContext]

    async def call(ctx: RunContext[ToolContext], **arguments: Any) -> str:
        return await _result(function, name, arguments | dict.fromkeys(wants_context, ctx.deps))

    first = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_ONLY, annotation=RunContext[ToolContext])
    # By keyword only, since what the model gives has names and the context may have stood anywhere among them.
    others = [
        parameter.replace(annotation=hints[each], kind=inspect.Parameter.KEYWORD_ONLY)
        for each, parameter in signature.parameters.items()
        if each not in wants_context
    ]
    call.__signature__ = inspect.Signature([first, *others], return_annotation=str)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in [first, *others]} | {"return": str}
    call.__name__ = call.__qualname__ = name
    call.__doc__ = inspect.getdoc(function)
    call.__module__ = function.__module__
    return call


def _hints(function: Callable[..., Any], name: str) -> tuple[dict[str, Any], inspect.Signature]:
    signature = inspect.signature(function)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidInput("tools", f"a type hint of {name!r} cannot be read: {error}", "Correct it.") from error
    for parameter in signature.parameters.values():
        if parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            raise InvalidType("tools", f"{name!r} takes *{parameter.name}", "Name each parameter.")
        if parameter.name not in hints:
            raise InvalidType("tools", f"{name!r}: {parameter.name} has no type hint", "Give each parameter one.")
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise InvalidType("tools", f"{name!r}: {parameter.name} is positional only", "Remove the `/`.")
    return hints, signature


async def _result(function: Callable[..., Any], name: str, arguments: Mapping[str, Any]) -> str:
    """What the tool gave, as text; a failure is told to the model, which may do without or try otherwise."""
    try:
        return _as_text(await call_host(function, **arguments))
    except Exception as error:  # noqa: BLE001 - a host's code, which may raise anything; the model has to know
        log.warning("the tool %s failed with %s", name, type(error).__name__)
        return clean(f"The tool failed. {type(error).__name__}: {error}")[:MAX_RESULT_CHARS]


def _as_text(value: object) -> str:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, str):
        text = value
    else:
        try:
            text = json.dumps(to_jsonable_python(value), ensure_ascii=False, allow_nan=False)
        except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
            raise InvalidType("result", f"{type(value).__name__} is no JSON", "Return text or plain data.") from error
    text = clean(text)
    if len(text) <= MAX_RESULT_CHARS:
        return text
    return f"{text[:MAX_RESULT_CHARS]}\n[{len(text) - MAX_RESULT_CHARS} more characters were cut]"
