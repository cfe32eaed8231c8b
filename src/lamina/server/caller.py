"""The caller of a request: a principal, the kernel of its tenant, and whose things it may reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from lamina.errors import ScopeError
from lamina.kernel import Kernel
from lamina.server.authentication import authenticated
from lamina.server.principal import Access, Principal

__all__ = ["Administrator", "Caller", "Reader", "Writer"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Whom a route works for. Routes reach everything through it, and so stay inside its tenant and owner."""

    principal: Principal
    kernel: Kernel

    def owner(self, asked: str | None) -> str | None:
        """The owner to read or write for: the token's own where it has one, else the one that was asked for.

        Raises:
            ScopeError: the token is another owner's.
        """
        own = self.principal.owner
        if own is None or asked in {None, own}:
            return asked if own is None else own
        raise ScopeError("The token is bound to another owner.")


def _caller(access: Access) -> Callable[..., Any]:
    async def caller(request: Request, principal: Annotated[Principal, Depends(authenticated)]) -> Caller:
        if access not in principal.access:
            raise ScopeError(f"The token does not have the scope {access.value!r}.")
        return Caller(principal, await request.app.state.kernels.of(principal.tenant))

    return caller


Reader = Annotated[Caller, Depends(_caller(Access.READ))]
Writer = Annotated[Caller, Depends(_caller(Access.WRITE))]
Administrator = Annotated[Caller, Depends(_caller(Access.ADMIN))]
