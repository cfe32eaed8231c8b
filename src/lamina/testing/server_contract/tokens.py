"""API tokens: kept as they are, found by digest alone, revoked for good; and the tenants that there are."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from lamina.domain.api_token import TokenScope, token_digest
from lamina.domain.idempotency import KeptResponse
from lamina.errors import Conflict, InvalidInput, InvalidType
from lamina.ports.server_store import ServerStore
from lamina.testing.server_contract.material import ANSWER, LOOKALIKES, NOW, PLACE, REFUSED_NAMES, at, begin, token

__all__ = ["TenantContract", "TokenContract", "TokenPurgeContract"]


class TokenContract:
    """Tokens."""

    async def test_every_field_of_a_token_comes_back(self, store: ServerStore) -> None:
        full = token(
            "t1",
            scopes=frozenset(TokenScope),
            label="L\u00e4ptop \u2603 %_'",
            expires_at=at(86400.5),
            revoked_at=at(7),
            last_used_at=at(6),
        )
        bare = token("t2", owner=None, scopes=frozenset({TokenScope.READ}), label="", tenant="other")
        for each in (full, bare):
            await store.add_token(each)
            assert await store.find_token(each.digest) == each

    async def test_times_come_back_in_utc(self, store: ServerStore) -> None:
        there = timezone(timedelta(hours=5, minutes=30))
        await store.add_token(token(created_at=NOW.astimezone(there)))
        found = await store.find_token(token_digest("t1"))
        assert found is not None
        assert found.created_at.isoformat() == NOW.isoformat()

    async def test_a_token_is_found_by_its_whole_digest_and_by_nothing_else(self, store: ServerStore) -> None:
        made = token()
        await store.add_token(made)
        tried = ["", made.id, "t1", made.digest[:-1], made.digest.upper(), made.digest + "0", "%", "_" * 64, "\x00"]
        assert [await store.find_token(each) for each in tried] == [None] * len(tried)
        assert await store.find_token(token_digest("t2")) is None
        with pytest.raises(InvalidType, match="digest"):
            await store.find_token(None)  # type: ignore[arg-type]

    async def test_an_id_and_a_digest_are_taken_once(self, store: ServerStore) -> None:
        await store.add_token(token("t1"))
        for taken in (token("t1", digest=token_digest("other")), token("t2", digest=token_digest("t1"))):
            with pytest.raises(Conflict):
                await store.add_token(taken.replace(tenant="other", label="taken over"))
        assert await store.list_tokens() == [token("t1")]

    async def test_tokens_are_listed_newest_first_then_by_id_in_pages_that_tile(self, store: ServerStore) -> None:
        made = [token(f"t{n:02}", created_at=at(n // 3), tenant="acme" if n % 2 else "other") for n in range(12)]
        for each in made:
            await store.add_token(each)
        expected = sorted(made, key=lambda each: (-each.created_at.timestamp(), each.id))
        assert await store.list_tokens() == expected
        pages = [await store.list_tokens(limit=5, offset=offset) for offset in range(0, 15, 5)]
        assert [each for page in pages for each in page] == expected
        assert await store.list_tokens("acme") == [each for each in expected if each.tenant == "acme"]
        assert await store.list_tokens("acme", limit=2, offset=1) == (await store.list_tokens("acme", limit=3))[1:]
        assert await store.list_tokens(limit=0) == await store.list_tokens("nobody") == []

    async def test_tokens_of_look_alike_tenants_are_kept_apart(self, store: ServerStore) -> None:
        made = [token(f"t{n}", tenant=name) for n, name in enumerate(LOOKALIKES)]
        for each in made:
            await store.add_token(each)
        for each in made:
            assert await store.list_tokens(each.tenant) == [each]

    async def test_a_token_is_revoked_once_and_for_good(self, store: ServerStore) -> None:
        for each in ("t1", "t2"):
            await store.add_token(token(each))
        assert await store.revoke_token("t1", now=at(5))
        assert not await store.revoke_token("t1", now=at(6))
        assert not await store.revoke_token("t3", now=at(6))
        found = [await store.find_token(token_digest(each)) for each in ("t1", "t2")]
        assert found == [token("t1", revoked_at=at(5)), token("t2")]

    async def test_another_tenants_token_is_not_there_to_be_revoked(self, store: ServerStore) -> None:
        await store.add_token(token(tenant="a_"))
        for other in ("a", "a%", "A_", "ab"):
            assert not await store.revoke_token("t1", now=at(5), tenant=other)
        assert await store.list_tokens() == [token(tenant="a_")]
        assert await store.revoke_token("t1", now=at(5), tenant="a_")

    async def test_a_use_is_noted_at_most_once_a_minute_and_never_goes_back(self, store: ServerStore) -> None:
        for each in ("t1", "t2"):
            await store.add_token(token(each))
        noted = [await store.note_use("t1", now=at(seconds)) for seconds in (10, 10, 69.9, 5, 70, 71)]
        assert noted == [True, False, False, False, True, False]
        assert not await store.note_use("t3", now=at(10))
        found = [await store.find_token(token_digest(each)) for each in ("t1", "t2")]
        assert found == [token("t1", last_used_at=at(70)), token("t2")]

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            *[({"id": name}, "id") for name in REFUSED_NAMES],
            *[({"tenant": name}, "tenant") for name in REFUSED_NAMES],
            *[({"owner": name}, "owner") for name in REFUSED_NAMES],
            ({"digest": "secret"}, "digest"),
            ({"digest": token_digest("t1").upper()}, "digest"),
            ({"scopes": frozenset()}, "scopes"),
            ({"scopes": frozenset({"everything"})}, "scopes"),
            ({"label": "x" * 201}, "label"),
            ({"label": "\x00"}, "label"),
            ({"created_at": NOW.replace(tzinfo=None)}, "created_at"),
            ({"expires_at": NOW}, "expires_at"),
        ],
    )
    async def test_a_token_that_cannot_be_is_refused(
        self, store: ServerStore, changes: dict[str, Any], field: str
    ) -> None:
        with pytest.raises(InvalidInput, match=field):
            await store.add_token(token(**changes))
        assert await store.list_tokens() == []

    @pytest.mark.parametrize(
        ("tenant", "limit", "offset"), [("", 1, 0), (" ", 1, 0), ("acme", -1, 0), (None, 1, -1), (None, 2**63, 0)]
    )
    async def test_a_page_that_cannot_be_is_refused(
        self, store: ServerStore, tenant: str | None, limit: int, offset: int
    ) -> None:
        with pytest.raises(InvalidInput):
            await store.list_tokens(tenant, limit=limit, offset=offset)

    @pytest.mark.parametrize("now", [None, "2026-08-02", 1754136000])
    async def test_what_is_no_instant_is_refused(self, store: ServerStore, now: Any) -> None:
        await store.add_token(token())
        wrong: datetime = now
        with pytest.raises(InvalidType):
            await store.revoke_token("t1", now=wrong)
        with pytest.raises(InvalidType):
            await store.note_use("t1", now=wrong)
        assert await store.list_tokens() == [token()]


class TokenPurgeContract:
    """Tokens that ran out."""

    async def test_a_purge_takes_tokens_that_ran_out_before_and_no_other(self, store: ServerStore) -> None:
        made = [
            token("expired", expires_at=at(50)),
            token("revoked", revoked_at=at(50)),
            token("revoked, then expired", revoked_at=at(50), expires_at=at(500)),
            token("expired, then revoked", expires_at=at(50), revoked_at=at(500), tenant="other"),
            token("expires at that instant", expires_at=at(100)),
            token("revoked later", revoked_at=at(101)),
            token("good for good", created_at=at(1)),
            token("good for a while", expires_at=at(500)),
        ]
        for each in made:
            await store.add_token(each)
        assert await store.purge_tokens(at(50)) == 0
        assert await store.purge_tokens(at(100)) == 4
        assert await store.purge_tokens(at(100)) == 0
        assert {each.id for each in await store.list_tokens()} == {each.id for each in made[4:]}

    async def test_that_tokens_were_made_once_outlasts_every_purge(self, store: ServerStore) -> None:
        for number in range(3):
            await store.add_token(token(f"t{number}", created_at=at(number), revoked_at=at(10)))
        assert await store.purge_tokens(at(10**6)) == 2
        assert await store.purge_tokens(at(10**6)) == 0
        assert [each.id for each in await store.list_tokens()] == ["t2"]


class TenantContract:
    """Tenants, and how much they all take."""

    async def test_the_size_is_of_the_whole_database_and_grows_with_it(self, store: ServerStore) -> None:
        before = await store.size_bytes()
        begun = await begin(store)
        assert begun.claim is not None
        answer = KeptResponse(200, (), os.urandom(4 * 1024 * 1024))  # which cannot be compressed
        assert await store.finish(*PLACE, begun.claim, response=answer)
        assert await store.size_bytes() >= before + len(answer.body) // 2

    async def test_tenants_are_those_noted_and_those_of_tokens_in_order(self, store: ServerStore) -> None:
        assert await store.tenants() == []
        noted = [await store.note_tenant(name, now=at(n)) for n, name in enumerate([*LOOKALIKES, *LOOKALIKES])]
        assert noted == [True] * len(LOOKALIKES) + [False] * len(LOOKALIKES)
        await store.add_token(token(tenant="of a token"))
        await store.add_token(token("t2", tenant="a"))
        assert await store.tenants() == sorted([*LOOKALIKES, "of a token"])

    async def test_a_tenant_that_is_forgotten_leaves_nothing_behind_and_others_stay(self, store: ServerStore) -> None:
        for number, name in enumerate(LOOKALIKES):
            await store.note_tenant(name, now=NOW)
            await store.add_token(token(f"t{number}", tenant=name))
            begun = await begin(store, name, "caller", "key")
            assert begun.claim is not None
            await store.finish(name, "caller", "key", begun.claim, response=ANSWER)
        gone, *others = LOOKALIKES
        assert await store.forget_tenant(gone)
        assert not await store.forget_tenant(gone)
        assert await store.tenants() == sorted(others)
        assert await store.find_token(token_digest("t0")) is None
        assert len(await store.list_tokens()) == len(others)
        assert (await begin(store, gone, "caller", "key")).claim is not None
        for name in others:
            assert (await begin(store, name, "caller", "key")).response == ANSWER

    async def test_an_owner_that_is_forgotten_loses_the_tokens_and_the_tenant_its_kept_answers(
        self, store: ServerStore
    ) -> None:
        await store.add_token(token("t1", tenant="a", owner="mira"))
        await store.add_token(token("t2", tenant="a", owner="Mira"))
        await store.add_token(token("t3", tenant="b", owner="mira"))
        for tenant in ("a", "b"):
            begun = await begin(store, tenant, "caller", "key")
            assert begun.claim is not None
            await store.finish(tenant, "caller", "key", begun.claim, response=ANSWER)
        running = await begin(store, "a", "caller", "running")
        assert await store.forget_owner("a", "mira") == (1, 1)
        assert await store.forget_owner("a", "mira") == (0, 0)
        assert {each.id for each in await store.list_tokens()} == {"t2", "t3"}
        assert (await begin(store, "b", "caller", "key")).response == ANSWER
        assert running.claim is not None
        assert await store.finish("a", "caller", "running", running.claim, response=ANSWER)

    @pytest.mark.parametrize("name", REFUSED_NAMES)
    async def test_what_no_tenant_is_called_is_refused(self, store: ServerStore, name: str) -> None:
        with pytest.raises(InvalidInput, match="tenant"):
            await store.note_tenant(name, now=NOW)
        with pytest.raises(InvalidInput, match="tenant"):
            await store.forget_tenant(name)
        assert await store.tenants() == []
