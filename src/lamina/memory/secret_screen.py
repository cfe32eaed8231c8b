"""The policy about secrets, applied to whatever is on its way into a store, and told to who listens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Self, TypeVar

from lamina.domain.memory import MemoryEntry
from lamina.domain.pack import Pack, PackMemory
from lamina.domain.screening import Screening
from lamina.domain.secrets import SecretsPolicy
from lamina.domain.thread import ThreadEvent
from lamina.errors import ConfigError
from lamina.ports.clock import Clock
from lamina.ports.events import Emit, Event, EventName

__all__ = ["SecretScreen"]

Thing = TypeVar("Thing")

_LARGE: Final = 64 * 1024
"""Characters from which on a text is read in a thread, since it takes some milliseconds."""


class SecretScreen:
    """What a part of Lamina asks before it stores: the thing as it may be stored, or `InvalidInput` under `refuse`."""

    def __init__(
        self,
        policy: SecretsPolicy | str = SecretsPolicy.OFF,
        *,
        tenant: str = "",
        clock: Clock | None = None,
        emit: Emit | None = None,
    ) -> None:
        """With `emit` and a `clock`, each finding is told: where, the id, and the kinds.

        Raises:
            ConfigError: there is no such policy.
        """
        try:
            self.policy = SecretsPolicy(policy)
        except ValueError:
            remedy = f"Use one of: {', '.join(SecretsPolicy)}."
            raise ConfigError("secrets", f"{policy!r:.50} is no policy", remedy) from None
        self._tenant = tenant
        self._clock = clock
        self._emit = emit

    @classmethod
    def of(cls, given: Self | SecretsPolicy | str, *, tenant: str, clock: Clock, emit: Emit | None) -> SecretScreen:
        """The screen itself, or one of this policy."""
        return given if isinstance(given, SecretScreen) else cls(given, tenant=tenant, clock=clock, emit=emit)

    @property
    def is_on(self) -> bool:
        """Whether anything is looked for."""
        return self.policy is not SecretsPolicy.OFF

    def entry(self, entry: MemoryEntry) -> MemoryEntry:
        """A memory: its content, tags, source and metadata."""
        return self._screened("memory", entry.id, entry, Screening.entry)

    def event(self, event: ThreadEvent) -> ThreadEvent:
        """A message of a thread or a session, and the state beside it."""

        def screen(screening: Screening, event: ThreadEvent) -> ThreadEvent:
            state = screening.value("state", event.state)
            return event.replace(message=screening.message(event.message), state=state)

        return self._screened("message", event.message.id, event, screen)

    def pack(self, pack: Pack) -> Pack:
        """The head of a pack: its description, tags and metadata."""
        return self._screened("pack", pack.id, pack, Screening.pack)

    def pack_memory(self, memory: PackMemory) -> PackMemory:
        """A memory of a pack, which may have come without its content."""
        return self._screened("pack_memory", memory.id, memory, Screening.pack_memory)

    def metadata(self, where: str, id: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """The metadata of something that has little else."""
        return self._screened(where, id, metadata, lambda screening, each: screening.document("", each)[1])

    async def document(self, source: str, content: str, metadata: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The text of a document and its metadata; `source` is told as its id."""

        def screen(screening: Screening, given: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
            return screening.document(*given)

        if not self.is_on or len(content) < _LARGE:
            return self._screened("document", source, (content, metadata), screen)
        return await asyncio.to_thread(self._screened, "document", source, (content, metadata), screen)

    def _screened(self, where: str, id: str, thing: Thing, screen: Callable[[Screening, Thing], Thing]) -> Thing:
        if not self.is_on:
            return thing
        screening = Screening(self.policy)
        screened = screen(screening, thing)
        if screening.kinds and self._emit is not None and self._clock is not None:
            facts: Mapping[str, Any] = {"where": where, "id": id, "kinds": sorted(screening.kinds)}
            self._emit(Event(EventName.SECRETS_FOUND, self._clock(), self._tenant, facts))
        return screened
