"""Whose memories a call may touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.domain.memory import SHARED_LAYERS
from lamina.domain.text import check_name

if TYPE_CHECKING:
    from lamina.domain.memory import MemoryEntry

__all__ = ["Scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The tenant, and where given the owner and the namespace, that a call is bound to.

    All three are compared for equality, case-sensitively, code point by code point: never by
    prefix, pattern or normalisation. `None` means "any" of this tenant.

    `include_shared` lets the entries of the shared layers (organizational and global) pass
    whoever owns them; the namespace still binds them, and so does the tenant, always.
    """

    tenant: str
    owner: str | None = None
    namespace: str | None = None
    include_shared: bool = False

    def __post_init__(self) -> None:
        check_name("tenant", self.tenant)
        if self.owner is not None:
            check_name("owner", self.owner)
        if self.namespace is not None:
            check_name("namespace", self.namespace)

    def admits(self, entry: MemoryEntry) -> bool:
        """Whether the entry lies in this scope: the reference that every adapter is held to."""
        if entry.tenant != self.tenant:
            return False
        if self.namespace is not None and entry.namespace != self.namespace:
            return False
        if self.owner is None or entry.owner == self.owner:
            return True
        return self.include_shared and entry.layer in SHARED_LAYERS
