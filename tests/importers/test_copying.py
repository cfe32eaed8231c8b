import asyncio
import sqlite3

import pytest

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.adapters.sqlite import SqliteAdapter
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, Conflict, EmbeddingFingerprintError
from lamina.importers.copying import copy_memories
from lamina.memory.embedding import META_KEY
from lamina.testing.memory_contract.material import NOW, fields_of, listed, memory, put, second
from lamina.testing.memory_contract.round_trip import full

EVERYTHING = MemoryFilter(now=NOW, expiry=Expiry.ANY)


@pytest.fixture
async def source(tmp_path):
    adapter = SqliteAdapter(tmp_path / "source.db")
    await adapter.initialize()
    yield adapter
    await adapter.close()


@pytest.fixture
async def target(tmp_path):
    adapter = SqliteAdapter(tmp_path / "target.db")
    await adapter.initialize()
    yield adapter
    await adapter.close()


async def fill(adapter, number=1_200):
    entries = [memory(f"m{n:04d}", f"text {n}", embedding=[1.0, n / 7, 0.1]) for n in range(number)]
    entries += [full(), memory("expired", expires_at=second(-1)), memory("theirs", owner="bob", namespace="other")]
    await adapter.store_many(Scope("acme"), entries)
    await adapter.update(Scope("acme"), "m0001", {"content": "changed", "updated_at": second(3)})
    await adapter.touch(Scope("acme"), ["m0002", "m0002"], second(4))
    await adapter.store(Scope("rivals"), memory(tenant="rivals"))
    await adapter.save_meta(Scope("acme"), META_KEY, "a model", NOW)


async def all_of(adapter, tenant="acme"):
    return [
        fields_of(each)
        for each in await listed(adapter, Scope(tenant), EVERYTHING, limit=5_000, include_embeddings=True)
    ]


async def test_a_copy_has_every_field_every_vector_and_the_order(source, target) -> None:
    await fill(source)
    seen = []
    report = await copy_memories(source, target, "acme", progress=lambda *each: seen.append(each))
    assert (report.written, report.present) == (1_203, 0)
    assert await all_of(target) == await all_of(source)
    assert await target.load_meta(Scope("acme"), META_KEY) == "a model"
    assert await target.count(Scope("rivals"), EVERYTHING) == 0
    assert seen[-1] == (1_203, 1_203)


async def test_copying_again_changes_nothing_and_gives_the_same_checksum(source, target) -> None:
    await fill(source, 20)
    first = await copy_memories(source, target, "acme")
    again = await copy_memories(source, target, "acme")
    assert (again.written, again.present, again.checksum) == (0, 23, first.checksum)
    assert await all_of(target) == await all_of(source)


async def test_a_copy_that_was_broken_off_goes_on(source, target) -> None:
    await fill(source)

    def stop(done, total):
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await copy_memories(source, target, "acme", progress=stop)
    assert await target.count(Scope("acme"), EVERYTHING) == 500
    report = await copy_memories(source, target, "acme")
    assert (report.written, report.present) == (703, 500)
    assert await all_of(target) == await all_of(source)


async def test_another_memory_of_the_same_id_is_not_overwritten_unless_told_so(source, target) -> None:
    await fill(source, 3)
    await put(target, memory("m0001", "somebody else's"), memory("own", "stays"))
    with pytest.raises(Conflict, match="m0001"):
        await copy_memories(source, target, "acme")
    assert (await target.get(Scope("acme"), "m0001")).content == "somebody else's"
    report = await copy_memories(source, target, "acme", overwrite=True)
    assert report.written == 6
    assert (await target.get(Scope("acme"), "m0001")).content == "changed"
    assert (await target.get(Scope("acme"), "m0001")).revision == 2
    assert (await target.get(Scope("acme"), "own")).content == "stays"


async def test_vectors_of_another_model_are_not_mixed(source, target) -> None:
    await fill(source, 3)
    await target.save_meta(Scope("acme"), META_KEY, "another model", NOW)
    with pytest.raises(EmbeddingFingerprintError, match="another model"):
        await copy_memories(source, target, "acme")
    assert await target.count(Scope("acme"), EVERYTHING) == 0


class Forgetful(InMemoryAdapter):
    """Acknowledges everything and keeps all but one."""

    name = "forgetful"

    async def store_many(self, scope, entries, **options):
        kept = [each for each in entries if each.id != "m0002"]
        return await super().store_many(scope, kept, **options)


class Rounding(InMemoryAdapter):
    name = "rounding"

    async def store_many(self, scope, entries, **options):
        rounded = [each.replace(created_at=each.created_at.replace(microsecond=0)) for each in entries]
        return await super().store_many(scope, rounded, **options)


@pytest.mark.parametrize(("backend", "said"), [(Forgetful, "1 are not there"), (Rounding, "6 differ")])
async def test_a_backend_that_does_not_keep_what_it_is_given_is_found_out(source, backend, said) -> None:
    await fill(source, 3)
    with pytest.raises(AdapterError, match=said):
        await copy_memories(source, backend(), "acme")


async def test_a_source_that_changes_meanwhile_is_found_out(source, target, tmp_path) -> None:
    await fill(source)
    with sqlite3.connect(tmp_path / "target.db") as other:

        def change(done, total):
            other.execute("UPDATE lamina_memories SET confidence = 0.25 WHERE id = 'm0003'")
            other.commit()

        with pytest.raises(AdapterError, match="1 differ"):
            await copy_memories(source, target, "acme", progress=change)
    other.close()
