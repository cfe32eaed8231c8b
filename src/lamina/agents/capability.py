"""What an agent can do, in words that an intent's goal is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lamina.agents.tools import Tool
from lamina.domain.text import check_name, clean, is_blank
from lamina.domain.validation import check_unit_interval
from lamina.errors import InvalidInput, InvalidType

__all__ = ["AgentDefinition", "Capability", "read_capabilities"]


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing that an agent can do. `confidence`, from 0 to 1, says how well."""

    id: str
    name: str = ""
    description: str = ""
    confidence: float = 1.0

    def __post_init__(self) -> None:
        check_name("capability.id", self.id)
        for name in ("name", "description"):
            if not isinstance(getattr(self, name), str):
                raise InvalidType(f"capability.{name}", "must be text", "Give a str.")
        check_unit_interval("capability.confidence", self.confidence)

    @property
    def text(self) -> str:
        """The words that say what it is."""
        return clean(". ".join(part for part in (self.name, self.description) if part) or self.id)


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """What an agent is, beside the code that executes it."""

    name: str
    description: str = ""
    capabilities: tuple[Capability, ...] = ()
    instructions: str = ""
    tools: tuple[Tool, ...] = field(default=(), repr=False)

    @property
    def offers(self) -> list[tuple[str, float]]:
        """Each text that a goal is compared with, and the confidence that its closeness is multiplied by."""
        offers = [(capability.text, capability.confidence) for capability in self.capabilities]
        if not offers and not is_blank(self.description):
            offers.append((clean(self.description), 1.0))
        return offers


def read_capabilities(given: Sequence[Capability | Mapping[str, Any]]) -> tuple[Capability, ...]:
    """The capabilities, some perhaps as mappings with the fields of `Capability`; each id once."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise InvalidType("capabilities", f"must be a list, not {type(given).__name__}", "Give a list.")
    read: dict[str, Capability] = {}
    for each in given:
        if isinstance(each, Mapping):
            capability = _from_mapping(each)
        elif isinstance(each, Capability):
            capability = each
        else:
            raise InvalidType("capabilities", f"must hold Capability, not {type(each).__name__}", "Give such.")
        if capability.id in read:
            raise InvalidInput("capabilities", f"the id {capability.id!r} stands there twice", "Rename one.")
        read[capability.id] = capability
    return tuple(read.values())


def _from_mapping(given: Mapping[str, Any]) -> Capability:
    for key in given:
        if key not in Capability.__dataclass_fields__:
            known = ", ".join(Capability.__dataclass_fields__)
            raise InvalidInput("capabilities", f"{key!r} is no field of a capability", f"Use: {known}.")
    if "id" not in given:
        raise InvalidInput("capabilities", "one has no id", "Give each an id.")
    return Capability(**given)
