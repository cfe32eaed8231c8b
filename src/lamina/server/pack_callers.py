"""The caller of a request about packs: what it may see, and what it may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from lamina.packs.service import ContextPacks
from lamina.server.caller import Caller, Reader, Writer

__all__ = ["PackCaller", "PackReader", "PackWriter"]


@dataclass(frozen=True, slots=True)
class PackCaller:
    """Whom a route about packs works for.

    `packs` refuse to change what is shared where the token is bound to an owner: whoever it is, the packs
    themselves look, at the moment of the change.
    """

    caller: Caller
    packs: ContextPacks
    max_results: int
    """How many memories one request may ask for at most, and so bring back whole."""

    def owner(self, asked: str | None) -> str | None:
        """As `Caller.owner`; None is nobody, who sees what is shared."""
        return self.caller.owner(asked)


def _reading(request: Request, caller: Reader) -> PackCaller:
    return _of(request, caller, caller.kernel.packs)


def _writing(request: Request, caller: Writer) -> PackCaller:
    packs = caller.kernel.packs
    return _of(request, caller, packs if caller.principal.owner is None else packs.without_shared_writes())


def _of(request: Request, caller: Caller, packs: ContextPacks) -> PackCaller:
    return PackCaller(caller, packs, min(request.app.state.settings.max_results, packs.config.max_limit))


PackReader = Annotated[PackCaller, Depends(_reading)]
PackWriter = Annotated[PackCaller, Depends(_writing)]
