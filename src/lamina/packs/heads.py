"""The packs themselves, without their memories: named, changed, and found by what they say they are about."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from lamina.domain.pack import Pack, PackFace, PackStatus, PackSummary
from lamina.domain.storable_pack import check_revision, storable_pack
from lamina.domain.text import check_name
from lamina.errors import Conflict, PackNotFound, ProviderError, ScopeError
from lamina.memory.embedding import vectors_of
from lamina.memory.secret_screen import SecretScreen
from lamina.ports.clock import Clock
from lamina.ports.embedder import Embedder, Fingerprint
from lamina.ports.pack_store import PackQuery, PackStore

__all__ = ["ATTEMPTS", "PackHeads", "pack_text", "summary_of"]

ATTEMPTS: Final = 100
"""How often a change is repeated on what others have written meanwhile."""

_TEXTS: Final = frozenset({"name", "description", "tags"})
"""What a pack is found by."""

log = logging.getLogger(__name__)

_SCREENED = ("description", "tags", "metadata")
"""Fields with a caller's own words, other than the name, which has none of a secret's forms."""


class PackHeads:
    """Looks packs up and changes them, with the vectors that they are found by."""

    def __init__(
        self,
        store: PackStore,
        *,
        tenant: str,
        embedder: Embedder | None,
        clock: Clock,
        secrets: SecretScreen,
        spares_shared: bool = False,
    ) -> None:
        self.secrets = secrets
        self._store = store
        self._tenant = tenant
        self._embedder = embedder
        self._clock = clock
        self._spares_shared = spares_shared

    def sparing_shared(self) -> Self:
        """The same for a caller that may not change what is shared."""
        view = copy.copy(self)
        view._spares_shared = True  # noqa: SLF001 - it is of this very class
        return view

    def check_change(self, pack: Pack) -> None:
        """Refuse to change the pack or what is in it, if it is shared and this spares what is shared.

        Raises:
            ScopeError: it is.
        """
        if self._spares_shared and pack.owner is None:
            raise ScopeError("The pack is shared, and may only be read here.")

    async def find_to_change(self, name: str, owner: str | None) -> Pack:
        """As `find`, for a change of the pack or of what is in it. Raises as `check_change` too."""
        pack = await self.find(name, owner)
        self.check_change(pack)
        return pack

    async def find_by_ids(self, ids: Sequence[str], owner: str | None) -> list[Pack]:
        """The packs of these ids, in their order.

        Raises:
            PackNotFound: the owner does not see one of them.
        """
        packs = await self.visible(ids, owner)
        for id in ids:
            if id not in packs:
                raise PackNotFound(id)
        return [packs[id] for id in ids]

    async def find(self, name: str, owner: str | None) -> Pack:
        """The owner's own pack of this name, else the shared one.

        Raises:
            PackNotFound: there is neither.
        """
        check_name("pack", name)
        for whose in [None] if owner is None else [check_name("owner", owner), None]:
            pack = await self._store.find_pack(self._tenant, name, owner=whose)
            if pack is not None:
                return pack
        raise PackNotFound(name)

    async def visible(self, ids: Sequence[str], owner: str | None) -> dict[str, Pack]:
        """Those of these packs that the owner, or for None everybody, sees, by id."""
        if owner is not None:
            check_name("owner", owner)
        found = await self._store.get_packs(self._tenant, ids)
        whose = {None, owner}
        return {pack.id: pack for pack in found if pack.status is not PackStatus.DELETED and pack.owner in whose}

    async def create(self, pack: Pack) -> Pack:
        """Keep the new pack, with its vector if it can be made."""
        self.check_change(pack)
        made = await self._embedded(self.secrets.pack(storable_pack(pack)))
        await self._store.create_pack(made)
        (kept,) = await self._store.get_packs(self._tenant, [made.id])
        return kept

    async def change(
        self, name: str, owner: str | None, changes: Mapping[str, Any], expected_revision: int | None = None
    ) -> Pack:
        """Change fields of the pack; the pack as it is then.

        Raises:
            PackNotFound: there is none of this name.
            Conflict: it has another revision than the expected one, or kept changing.
            PackExists: the owner has another pack of the new name.
        """
        if expected_revision is not None:
            check_revision("expected_revision", expected_revision)
        return await self._change(await self.find(name, owner), changes, expected_revision)

    async def _change(self, pack: Pack, changes: Mapping[str, Any], expected_revision: int | None = None) -> Pack:
        self.check_change(pack)
        name = pack.name
        for _ in range(ATTEMPTS):
            if expected_revision is not None and pack.revision != expected_revision:
                problem = f"it has revision {pack.revision}, not {expected_revision}"
                raise Conflict(f"The pack {name!r}", problem)
            changed = pack.replace(**changes, updated_at=max(self._clock(), pack.updated_at))
            if any(getattr(changed, field) != getattr(pack, field) for field in _SCREENED):
                changed = self.secrets.pack(changed)
            if any(getattr(changed, field) != getattr(pack, field) for field in _TEXTS):
                changed = await self._embedded(storable_pack(changed))
            if await self._store.save_pack(changed, expected_revision=pack.revision):
                saved = await self._store.get_packs(self._tenant, [pack.id])
                if saved:
                    return saved[0]
            # By its id: if the owner's own is gone by now, its name means the shared one.
            current = await self.visible([pack.id], pack.owner)
            if pack.id not in current:
                raise PackNotFound(name)
            pack = current[pack.id]
        raise Conflict(f"The pack {name!r}", f"it changed {ATTEMPTS} times while it was being edited")

    async def delete(self, name: str, owner: str | None, expected_revision: int | None = None) -> Pack:
        """Mark the pack as deleted; never the shared one where the owner has deleted an own one of this name.

        Raises:
            PackNotFound: there is none of this name.
            Conflict: it has another revision than the expected one.
        """
        if expected_revision is not None:
            check_revision("expected_revision", expected_revision)
        pack = await self.find(name, owner)
        if pack.owner != owner and any(each.owner == owner for each in await self.deleted(name, owner)):
            raise PackNotFound(name)
        return await self._change(pack, {"status": PackStatus.DELETED}, expected_revision)

    async def deleted(self, name: str, owner: str | None) -> list[Pack]:
        """What was deleted and has this id, or else this name: of the owner's own, or else of the shared ones."""
        query = PackQuery(tenant=self._tenant, owner=owner, statuses=frozenset({PackStatus.DELETED}))
        found = await self._store.list_packs(query)
        named = [pack for pack in found if pack.name == name]
        own = [pack for pack in named if pack.owner is not None]
        return [pack for pack in found if pack.id == name] or own or named

    async def embed_anew(self, *, force: bool) -> int:
        """Give each pack that has no vector of the embedder's model, or with `force` each, a new one; how many."""
        everything = PackQuery(tenant=self._tenant, any_owner=True, statuses=frozenset(PackStatus))
        done = 0
        for pack in await self._store.list_packs(everything):
            if force or not self._is_of_model(pack.fingerprint):
                made = await self._embedded(pack)
                if made.embedding is not None:
                    done += await self._store.save_pack(made, expected_revision=pack.revision)
        return done

    async def _embedded(self, pack: Pack) -> Pack:
        """The pack with a new vector, or without any where there is no embedder or it fails."""
        if self._embedder is not None:
            try:
                (vector,) = await vectors_of(self._embedder, [pack_text(pack)])
            except ProviderError as error:
                log.warning("the pack %s is found by words alone: %s", pack.id, type(error).__name__)
            else:
                mark = Fingerprint(self._embedder.provider, self._embedder.model, len(vector))
                return pack.replace(embedding=vector, fingerprint=str(mark))
        return pack.replace(embedding=None, fingerprint=None)

    def _is_of_model(self, fingerprint: str | None) -> bool:
        if self._embedder is None or fingerprint is None:
            return False
        return fingerprint.startswith(f"{self._embedder.provider}:{self._embedder.model} with ")


def pack_text(pack: Pack | PackFace) -> str:
    """What a pack is found by."""
    name = pack.name.replace("_", " ").replace("-", " ")
    return "\n".join(each for each in (name, pack.description, ", ".join(pack.tags)) if each)


def summary_of(pack: Pack) -> PackSummary:
    """The first layer of disclosure."""
    return PackSummary(
        id=pack.id,
        name=pack.name,
        type=pack.type,
        description=pack.description,
        tags=list(pack.tags),
        owner=pack.owner,
        status=pack.status,
        created_at=pack.created_at,
        updated_at=pack.updated_at,
        revision=pack.revision,
    )
