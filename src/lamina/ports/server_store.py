"""What keeps the state that server processes share: API tokens, requests that may be repeated, leases, tenants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import ClassVar, Self

from lamina.domain.api_token import ApiToken
from lamina.domain.idempotency import Beginning, KeptResponse

__all__ = ["ServerStore"]


class ServerStore(ABC):
    """The same on every backend. What a method returns from is durable.

    Every method is atomic, and safe beside any other, from other tasks, threads and processes too. Tenants, ids,
    keys and names are compared for equality; texts are ordered by code point. Instants come from the
    callers. Claims and leases alone begin by the clock of the store, if it has one that all of its processes share, and
    last as long as it is from `now` to their end; elsewhere the processes are on one machine, and have its clock.

    Raises:
        InvalidInput: an argument cannot be taken (see `lamina.domain.storable_server`); nothing was written.
        InvalidType: likewise, for its type.
        AdapterUnavailable: it cannot be reached now; trying again may help.
        StoreDamaged: its data cannot be read as ours.
        AdapterError: anything else that went wrong in it.
    """

    name: ClassVar[str]

    @abstractmethod
    async def initialize(self) -> None:
        """Open it, and bring its layout up to date. Idempotent."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of it. Idempotent."""

    async def __aenter__(self) -> Self:
        """Open it."""
        await self.initialize()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of it."""
        await self.close()

    @abstractmethod
    async def size_bytes(self) -> int:
        """Bytes of the whole database that it is in, with all that others keep there."""

    # API tokens.

    @abstractmethod
    async def add_token(self, token: ApiToken) -> None:
        """Keep a new token.

        Raises:
            Conflict: there is one of this id or digest.
        """

    @abstractmethod
    async def find_token(self, digest: str) -> ApiToken | None:
        """The token of this digest, revoked or expired or not, or None; None too for what is no digest."""

    @abstractmethod
    async def list_tokens(self, tenant: str | None = None, *, limit: int = 100, offset: int = 0) -> list[ApiToken]:
        """The tokens of one tenant, or of all, revoked and expired ones too, newest first, then by id."""

    @abstractmethod
    async def revoke_token(self, id: str, *, now: datetime, tenant: str | None = None) -> bool:
        """Make the token good for nothing, for good; False if there is none, or it was revoked before.

        With a tenant, another tenant's is not there.
        """

    @abstractmethod
    async def note_use(self, id: str, *, now: datetime) -> bool:
        """Set `last_used_at`, unless a use was noted less than `USE_NOTED_EVERY` ago, or later; whether it was set."""

    @abstractmethod
    async def purge_tokens(self, before: datetime) -> int:
        """Forget the tokens that expired or were revoked before; how many.

        Never the newest there is: that tokens were made once is remembered, since a server asks for them from then on.
        """

    # Requests that may be repeated. A key belongs to a caller of a tenant.

    @abstractmethod
    async def begin(
        self, tenant: str, caller: str, key: str, fingerprint: str, *, now: datetime, lease_until: datetime
    ) -> Beginning:
        """Whether this request is to be done now; of several that begin at once, one is told so.

        `fingerprint` tells requests under one key apart. One that is in progress may be begun anew from its
        `lease_until` on, since whoever began it is taken to be gone; the former claim is then good for nothing.
        """

    @abstractmethod
    async def finish(self, tenant: str, caller: str, key: str, claim: str, *, response: KeptResponse) -> bool:
        """Keep the answer; False, with nothing changed, if the claim does not hold, or no longer."""

    @abstractmethod
    async def abandon(self, tenant: str, caller: str, key: str, claim: str) -> bool:
        """Forget the request, so that it may be begun anew; False, with nothing changed, if the claim does not hold."""

    @abstractmethod
    async def purge(self, before: datetime) -> int:
        """Forget the requests that were begun before; how many. Not those in progress with a lease beyond that."""

    # Leases.

    @abstractmethod
    async def acquire_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        """Have the lease until then; False if another holder has it now.

        Its holder may have it anew, for longer or shorter. It is free from the instant on that it was had until.
        """

    @abstractmethod
    async def release_lease(self, name: str, holder: str) -> bool:
        """Give the lease back; False if another holder has it, or nobody."""

    # Tenants.

    @abstractmethod
    async def note_tenant(self, tenant: str, *, now: datetime) -> bool:
        """Remember that the tenant was served; whether that is new."""

    @abstractmethod
    async def tenants(self) -> list[str]:
        """The tenants that were noted, and those of tokens, in order."""

    @abstractmethod
    async def forget_tenant(self, tenant: str) -> bool:
        """Remove all that is kept of the tenant: its tokens, its requests with their answers, and that it is one.

        False if there was nothing.
        """

    @abstractmethod
    async def forget_owner(self, tenant: str, owner: str) -> tuple[int, int]:
        """Remove the owner's tokens, and the tenant's kept answers; how many of each there were.

        All answers, since none tells whose content it holds. Requests that are being done are left.
        """
