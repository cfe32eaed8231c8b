"""What is kept about a tenant beside its memories."""

from __future__ import annotations

import pytest

from lamina.domain.scope import Scope
from lamina.errors import Conflict, LaminaError
from lamina.ports.memory_adapter import Capability, MemoryAdapter
from lamina.testing.memory_contract.material import HOSTILE, LIVE, MINE, NOW, by_text, ids, listed, memory, put

__all__ = ["MetaContract"]


class MetaContract:
    """Values about a tenant: its own, no memories, and saved only over what is expected."""

    async def test_what_is_kept_about_a_tenant_is_the_tenants(self, adapter: MemoryAdapter) -> None:
        for number, name in enumerate(HOSTILE):
            await adapter.save_meta(Scope(name), "fingerprint", f"value {number}", NOW)
            await adapter.save_meta(Scope(name), "other key", "another value", NOW)
        for number, name in enumerate(HOSTILE):
            assert await adapter.load_meta(Scope(name), "fingerprint") == f"value {number}", name
        assert await adapter.load_meta(Scope("nobody"), "fingerprint") is None
        assert await adapter.load_meta(Scope("a"), "no such key") is None

    async def test_what_is_kept_about_a_tenant_is_no_memory(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory())
        await adapter.save_meta_many(MINE, ["a", "b", "fingerprint"], "the same harbour", NOW)
        assert [await adapter.load_meta(MINE, key) for key in "ab"] == ["the same harbour"] * 2
        await adapter.save_meta(MINE, "fingerprint", "the harbour model", NOW)
        await adapter.save_meta(Scope("acme", "bob"), "fingerprint", "the harbour model, again", NOW)
        assert await adapter.load_meta(Scope("acme"), "fingerprint") == "the harbour model, again"
        assert ids(await listed(adapter, Scope("acme"))) == ["m1"]
        assert await adapter.count(Scope("acme"), LIVE) == 1
        if Capability.TEXT in adapter.capabilities:
            assert ids(await by_text(adapter, "harbour", Scope("acme"))) == ["m1"]

    async def test_meta_is_refused_if_it_could_not_be_kept(self, adapter: MemoryAdapter) -> None:
        await adapter.save_meta(MINE, "fingerprint", "good", NOW)
        for value in ("pay\x00roll", "a\ud83d"):
            with pytest.raises(LaminaError):
                await adapter.save_meta(MINE, "fingerprint", value, NOW)
        assert await adapter.load_meta(MINE, "fingerprint") == "good"

    async def test_meta_is_saved_only_over_what_is_expected(self, adapter: MemoryAdapter) -> None:
        other = Scope("other")
        await adapter.save_meta(other, "fingerprint", "theirs", NOW)
        await adapter.save_meta(MINE, "fingerprint", "first", NOW, expected=None)
        for expected in (None, "theirs", "first "):
            with pytest.raises(Conflict) as refusal:
                await adapter.save_meta(MINE, "fingerprint", "second", NOW, expected=expected)
            assert refusal.value.subject == "The meta value 'fingerprint'"
            assert await adapter.load_meta(MINE, "fingerprint") == "first"
        await adapter.save_meta(MINE, "fingerprint", "second", NOW, expected="first")
        assert await adapter.load_meta(MINE, "fingerprint") == "second"
        with pytest.raises(Conflict):
            await adapter.save_meta(MINE, "another", "value", NOW, expected="second")
        assert await adapter.load_meta(MINE, "another") is None
        await adapter.save_meta(MINE, "fingerprint", "third", NOW)
        assert await adapter.load_meta(MINE, "fingerprint") == "third"
