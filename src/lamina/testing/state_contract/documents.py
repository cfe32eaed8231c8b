"""Heads of documents."""

from __future__ import annotations

import pytest

from lamina.errors import InvalidInput
from lamina.ports.state_store import StateStore
from lamina.testing.state_contract.material import LOOKALIKES, document, second

__all__ = ["DocumentContract"]


class DocumentContract:
    """Saving by generation, and finding by source and owner."""

    async def test_an_id_is_taken_once(self, store: StateStore) -> None:
        assert await store.save_document(document(), expected_generation=None)
        assert not await store.save_document(document(digest="other"), expected_generation=None)
        assert await store.get_documents("acme", ["d1"]) == [document()]

    async def test_a_head_is_replaced_only_over_the_expected_generation(self, store: StateStore) -> None:
        await store.save_document(document(generation=3), expected_generation=None)
        new = document(source="new.md", owner="ada", generation=4, digest="x", chunks=2, ingested_at=second(1))
        for expected in (1, 2, 4):
            assert not await store.save_document(new, expected_generation=expected)
        assert await store.get_documents("acme", ["d1"]) == [document(generation=3)]
        assert await store.save_document(new, expected_generation=3)
        assert not await store.save_document(document(), expected_generation=3)
        assert await store.get_documents("acme", ["d1"]) == [new]
        assert not await store.save_document(document("d2"), expected_generation=1)
        assert await store.get_documents("acme", ["d2"]) == []

    async def test_a_head_is_deleted_only_at_the_expected_generation(self, store: StateStore) -> None:
        await store.save_document(document(generation=3), expected_generation=None)
        assert not await store.delete_document("acme", "d1", expected_generation=2)
        assert not await store.delete_document("acme", "D1")
        assert await store.delete_document("acme", "d1", expected_generation=3)
        assert not await store.delete_document("acme", "d1")
        assert await store.find_documents("acme") == []

    async def test_heads_are_found_by_source_exactly(self, store: StateStore) -> None:
        for number, name in enumerate(LOOKALIKES):
            await store.save_document(document(f"d{number}", source=name), expected_generation=None)
        for name in LOOKALIKES:
            assert [each.source for each in await store.find_documents("acme", source=name)] == [name]
        assert await store.find_documents("acme", source="aaa") == []

    async def test_heads_are_found_by_owner(self, store: StateStore) -> None:
        for name in (*LOOKALIKES, None):
            await store.save_document(document(f"of {name}", owner=name, source="s"), expected_generation=None)
        for name in LOOKALIKES:
            seen = [each.id for each in await store.find_documents("acme", owner=name)]
            assert seen == sorted([f"of {name}", "of None"])
            own = await store.find_documents("acme", owner=name, include_shared=False)
            assert [each.id for each in own] == [f"of {name}"]
            by_source = await store.find_documents("acme", owner=name, source="s", limit=1, offset=1)
            assert [each.id for each in by_source] == seen[1:]
        assert len(await store.find_documents("acme")) == len(LOOKALIKES) + 1
        assert len(await store.find_documents("acme", include_shared=False)) == len(LOOKALIKES)
        assert [each.id for each in await store.find_documents("acme", owner="nobody")] == ["of None"]

    async def test_heads_stand_by_source_and_then_id_and_pages_tile(self, store: StateStore) -> None:
        names = [
            ("b", "d2"),
            ("a", "d9"),
            ("ä", "d1"),
            ("b", "d1"),
            ("B", "d7"),
            ("\U0001f600", "d3"),
            ("\uffee", "d4"),
        ]
        for source, id in names:
            await store.save_document(document(f"{source}/{id}", source=source), expected_generation=None)
        whole = [each.id for each in await store.find_documents("acme")]
        assert whole == [f"{source}/{id}" for source, id in sorted(names)]
        pages = [await store.find_documents("acme", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
        assert [[each.id for each in page] for page in pages] == [whole[:3], whole[3:6], whole[6:], []]
        assert [each.id for each in await store.find_documents("acme", offset=5)] == whole[5:]
        assert await store.find_documents("acme", limit=0) == []

    async def test_pages_of_documents_do_not_move_when_others_are_made_and_deleted(self, store: StateStore) -> None:
        for number in range(7):
            await store.save_document(document(f"d{number}", source=f"s{number // 3}"), expected_generation=None)
        whole = [each.id for each in await store.find_documents("acme")]
        seen: list[str] = []
        after = None
        while page := await store.find_documents("acme", limit=2, after=after):
            seen += [each.id for each in page]
            after = (page[-1].source, page[-1].id)
            await store.delete_document("acme", page[0].id)
            await store.delete_document("acme", page[-1].id)
            await store.save_document(document(f"new{len(seen)}", source="a"), expected_generation=None)
        assert seen == whole

    async def test_heads_of_several_ids_come_by_id(self, store: StateStore) -> None:
        for number in range(4):
            await store.save_document(document(f"d{number}", source=f"{9 - number}"), expected_generation=None)
        found = await store.get_documents("acme", ["d3", "d1", "d3", "d9"])
        assert [each.id for each in found] == ["d1", "d3"]
        assert await store.get_documents("acme", []) == []
        assert await store.get_documents("other", ["d1"]) == []

    async def test_a_document_without_a_name_is_refused(self, store: StateStore) -> None:
        for bad in (
            document(""),
            document(tenant=" "),
            document(source="a\x00"),
            document(owner=""),
            document(chunks=-1),
        ):
            with pytest.raises(InvalidInput):
                await store.save_document(bad, expected_generation=None)
        assert await store.find_documents("acme") == []
