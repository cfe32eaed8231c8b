"""What a tool is: a name, what it says of itself, what it takes and gives, and what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from pydantic import BaseModel

from lamina.domain.text_fencing import quoted_json
from lamina.mcp.arguments import Arguments
from lamina.mcp.bound_memories import BoundMemories
from lamina.mcp.schemas import plain_schema

__all__ = ["Effect", "Result", "Tool"]


class Result(BaseModel):
    """The base of what a tool gives."""

    def shown(self) -> str:
        """The text that goes with the structured result: its JSON, quoted, unless the tool has words of its own."""
        return quoted_json(self.model_dump_json(by_alias=True))


@dataclass(frozen=True, slots=True)
class Effect:
    """What calling a tool does to what is remembered: three of a tool's four annotations.

    The fourth, an open world, is none of a memory's: it reaches nothing but itself.
    """

    reads_only: bool = False
    destroys: bool = False
    repeats_alike: bool = False

    def annotations(self, title: str) -> types.ToolAnnotations:
        """As the protocol has them."""
        return types.ToolAnnotations(
            title=title,
            read_only_hint=self.reads_only,
            destructive_hint=self.destroys,
            idempotent_hint=self.repeats_alike,
            open_world_hint=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool. `run` gets the memories of the connection and the arguments, checked."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type[Result]
    effect: Effect
    run: Callable[[BoundMemories, Any], Awaitable[Result]]

    def described(self) -> types.Tool:
        """As clients see it."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.arguments.input_schema(),
            output_schema=plain_schema(self.result.model_json_schema(by_alias=True, mode="serialization")),
            annotations=self.effect.annotations(self.title),
        )
