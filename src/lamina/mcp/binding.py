"""Whose memories a connection reaches: said at launch or by a token, and never by a tool's arguments."""

from __future__ import annotations

from dataclasses import dataclass

from lamina.domain.memory import DEFAULT_NAME
from lamina.domain.text import check_name

__all__ = ["Binding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The tenant and the owner of a connection, and where given the one namespace it reads and writes.

    Reads see the owner's own memories and the tenant's shared layers, as everywhere; writes reach the owner's own
    alone. Without a namespace, reads see every namespace and writes go to the default one. With `read_only` no tool
    that writes is offered or taken.

    Raises:
        InvalidInput: a name cannot identify anything.
    """

    tenant: str = DEFAULT_NAME
    owner: str = DEFAULT_NAME
    namespace: str | None = None
    read_only: bool = False

    def __post_init__(self) -> None:
        check_name("tenant", self.tenant)
        check_name("owner", self.owner)
        if self.namespace is not None:
            check_name("namespace", self.namespace)
