"""What is kept comes back as it was."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.domain.document import Document
from lamina.domain.message import (
    ContentPart,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
)
from lamina.domain.thread import SummarySource, Thread, ThreadEvent, ThreadKind, ThreadRef, ThreadStatus
from lamina.errors import InvalidInput, InvalidType
from lamina.ports.state_store import StateStore
from lamina.testing.state_contract.material import NOW, REF, begin, document, event, said, second, summary, thread

__all__ = ["RoundTripContract"]

JSON = {
    "n": None,
    "i": 1,
    "f": 1.0,
    "b": True,
    "s": "ä😀\u2028",
    "": {"deep": [[], {}, [1, "1"]]},
    "z": -0.0,
    "big": 2**70,
}
"""Values that a careless conversion changes."""

EXTRA = {"signature": "c2ln", "cache_control": {"type": "ephemeral"}}
PARTS: list[ContentPart] = [
    TextPart("words", EXTRA),
    ImagePart(url="https://example.org/a.png", width=3, height=4, detail="low", extra=EXTRA),
    ImagePart(data="aGk=", media_type="image/png"),
    FilePart(name="a.pdf", media_type="application/pdf", url="u", data="ZA==", text="inside", extra=EXTRA),
    ReasoningPart("thoughts", EXTRA),
    OpaquePart("video", {"id": 7, "type": "odd"}),
    TextPart(""),
]
CALLS = [ToolCall("c1", "look", '{"q": "a b"}', EXTRA), ToolCall("c2", "look", "not json")]


def full() -> ThreadEvent:
    """An event with every field."""
    message = Message(
        role=Role.ASSISTANT,
        content=PARTS,
        id="m1",
        timestamp=second(-5),
        name="bot",
        tool_calls=CALLS,
        tool_call_id="c0",
        metadata=JSON,
        parent="m0",
        extra=EXTRA,
    )
    return ThreadEvent(message, state={"__compaction__": {"original_content": "x"}, **JSON}, tokens=77, counter="o200k")


def full_document() -> Document:
    """A head with every field."""
    return document(
        owner="ada", metadata={"category": "api", **JSON}, digest="ab12", options=JSON, chunks=9, generation=4
    )


class RoundTripContract:
    """Every field, and texts of every kind."""

    async def test_every_field_of_a_message_comes_back(self, store: StateStore) -> None:
        await begin(store)
        [answer] = await store.append(REF, [full()], now=NOW)
        [back] = await store.events(REF)
        expected = full()
        expected.message.index = 1
        assert repr(answer) == repr(back) == repr(expected)

    @pytest.mark.parametrize("role", list(Role))
    async def test_every_role_comes_back(self, store: StateStore, role: Role) -> None:
        await begin(store)
        await store.append(REF, [event("m1", role=role)], now=NOW)
        assert [each.message.role for each in await store.events(REF)] == [role]

    async def test_what_is_missing_is_filled_in(self, store: StateStore) -> None:
        await begin(store)
        await store.append(REF, [event("m1"), event("m2", timestamp=second(3)), event("m3", parent="m1")], now=NOW)
        await store.append(REF, [event("m4", index=99)], now=second(9))
        back = [each.message for each in await store.events(REF)]
        assert [(each.index, each.parent, each.timestamp) for each in back] == [
            (1, None, NOW),
            (2, "m1", second(3)),
            (3, "m1", NOW),
            (4, "m3", second(9)),
        ]

    async def test_every_field_of_a_head_comes_back(self, store: StateStore) -> None:
        head = thread(owner="ada", namespace="notes", metadata=JSON, updated_at=second(2), status=ThreadStatus.ARCHIVED)
        assert repr(await store.create_thread(head)) == repr(head)
        assert repr(await store.get_thread(REF)) == repr(head)
        assert repr(await store.list_threads("acme")) == repr([head])

    async def test_a_new_thread_begins_empty_whatever_is_said(self, store: StateStore) -> None:
        claims: dict[str, Any] = {"last_index": 7, "folded_through": 5, "revision": 9}
        assert await store.create_thread(thread(**claims)) == thread()
        assert await store.get_thread(REF) == thread()

    async def test_every_field_of_a_summary_comes_back(self, store: StateStore) -> None:
        await begin(store)
        await store.append(REF, [event(f"m{n}") for n in range(4)], now=NOW)
        kept = summary(
            3, from_index=2, source=SummarySource.CUSTOM, topics=["a", ""], facts=["b"], form=JSON, tokens=5, text="ä\n"
        )
        assert await store.fold(REF, kept, expected_folded_through=0, now=NOW)
        assert repr(await store.summaries(REF)) == repr([kept])

    async def test_every_field_of_a_document_comes_back(self, store: StateStore) -> None:
        assert await store.save_document(full_document(), expected_generation=None)
        assert repr(await store.get_documents("acme", ["d1"])) == repr([full_document()])
        assert repr(await store.find_documents("acme")) == repr([full_document()])
        bare = document("d2")
        assert await store.save_document(bare, expected_generation=None)
        assert await store.get_documents("acme", ["d2"]) == [bare]

    @pytest.mark.parametrize(
        ("content", "kept"),
        [
            ("pay\x00roll", "pay\ufffdroll"),
            ("\ud83d lone", "\ufffd lone"),
            ("pair \ud83d\ude00", "pair 😀"),
            ("a" * 1_000_000, "a" * 1_000_000),
            ("灯台 \u202e \u200b\r\n\t\x07 'quoted' %s ? {x}", "灯台 \u202e \u200b\r\n\t\x07 'quoted' %s ? {x}"),
            ("", ""),
        ],
        ids=["nul", "surrogate", "pair", "large", "odd", "empty"],
    )
    async def test_odd_texts_are_kept_clean_everywhere(self, store: StateStore, content: str, kept: str) -> None:
        await begin(store, metadata={"t": content})
        given = Message(
            Role.USER,
            content,
            "m1",
            tool_calls=[ToolCall("c", "f", content)],
            metadata={"t": [content]},
            extra={"t": content},
        )
        parts = Message(Role.USER, [TextPart(content), OpaquePart("x", {"t": content})], "m2")
        events = [ThreadEvent(given, {"t": content}), ThreadEvent(parts)]
        answer = await store.append(REF, events, now=NOW)
        assert await store.events(REF) == answer
        first, other = (each.message for each in answer)
        assert (first.content, first.tool_calls[0].arguments, first.metadata, first.extra) == (
            kept,
            kept,
            {"t": [kept]},
            {"t": kept},
        )
        assert other.content == [TextPart(kept), OpaquePart("x", {"t": kept})]
        assert answer[0].state == {"t": kept}
        await store.fold(REF, summary(1, content, facts=[content]), expected_folded_through=0, now=NOW)
        [back] = await store.summaries(REF)
        assert (back.text, back.facts) == (kept, [kept])
        head = await store.get_thread(REF)
        assert head is not None
        assert head.metadata == {"t": kept}
        await store.save_document(document(metadata={"t": content}), expected_generation=None)
        assert [each.metadata for each in await store.get_documents("acme", ["d1"])] == [{"t": kept}]

    async def test_what_is_returned_and_what_was_given_are_not_the_stores(self, store: StateStore) -> None:
        await begin(store, metadata={"k": [1]})
        given = ThreadEvent(Message(Role.USER, [TextPart("a")], "m1", metadata={"k": [1]}), {"k": [1]})
        [answer] = await store.append(REF, [given], now=NOW)
        heads = [await store.get_thread(REF), *await store.list_threads("acme"), await store.create_thread(thread())]
        held = document(metadata={"k": [1]})
        await store.save_document(held, expected_generation=None)
        for each in (given, answer, *await store.events(REF), *await store.find_events(REF, ["m1"])):
            each.message.metadata["k"].append(2)
            each.state["k"].append(2)
            assert isinstance(each.message.content, list)
            each.message.content.append(TextPart("b"))
        for head in heads:
            assert isinstance(head, Thread)
            head.metadata["k"].append(2)
        for one in (held, *await store.get_documents("acme", ["d1"])):
            one.metadata["k"].append(2)
        [back] = await store.events(REF)
        assert (back.message.content, back.message.metadata, back.state) == ([TextPart("a")], {"k": [1]}, {"k": [1]})
        assert [each.metadata for each in await store.list_threads("acme")] == [{"k": [1]}]
        assert [each.metadata for each in await store.find_documents("acme")] == [{"k": [1]}]


class RefusalContract:
    """What cannot be kept is refused, and nothing is written."""

    @pytest.mark.parametrize(
        "ref",
        [
            ThreadRef("", "t1"),
            ThreadRef("acme", " "),
            ThreadRef("acme", "a\x00"),
            ThreadRef("acme", "\ud800"),
            ThreadRef("acme", "x" * 513),
            ThreadRef("acme", "t1", "thread!"),  # type: ignore[arg-type]
        ],
        ids=repr,
    )
    async def test_a_name_that_can_name_nothing_is_refused(self, store: StateStore, ref: ThreadRef) -> None:
        with pytest.raises(InvalidInput):
            await store.create_thread(thread(ref))
        with pytest.raises(InvalidInput):
            await store.get_thread(ref)
        with pytest.raises(InvalidInput):
            await store.append(ref, [event("m1")], now=NOW)
        with pytest.raises(InvalidInput):
            await store.delete_thread(ref)

    @pytest.mark.parametrize(
        "bad",
        [
            event(""),
            event("\ud800"),
            event("x" * 513),
            event("m2", metadata={"a": float("nan")}),
            event("m2", metadata={1: "a"}),
            event("m2", extra={"a": b"bytes"}),
            event("m2", extra={"a\x00": 1, "a\ufffd": 2}),
            event("m2", timestamp=NOW.replace(tzinfo=None)),
            event("m2", tokens=-1),
            event("m2").replace(state={"a": {1, 2}}),
            event("m2").replace(message=Message("user?", "x", "m2")),  # type: ignore[arg-type]
            event("m2").replace(message=Message(Role.USER, None, "m2")),  # type: ignore[arg-type]
            event("m2").replace(message=Message(Role.USER, ["x"], "m2")),  # type: ignore[list-item]
            event("m2").replace(message=Message(Role.USER, [TextPart(5)], "m2")),  # type: ignore[arg-type]
            event("m2", tool_calls=[ToolCall("c", "f", {"a": 1})]),  # type: ignore[arg-type]
            event("m2", tool_calls=5),
            event("m2", tool_call_id=5),
            "m2",
        ],
        ids=range(18),
    )
    async def test_one_event_that_cannot_be_kept_keeps_out_all_of_its_call(
        self, store: StateStore, bad: ThreadEvent
    ) -> None:
        await begin(store)
        with pytest.raises((InvalidInput, InvalidType)):
            await store.append(REF, [event("m1"), bad, event("m3")], now=NOW)
        assert await store.events(REF) == []
        assert await store.get_thread(REF) == thread()

    async def test_a_page_of_less_than_nothing_is_refused(self, store: StateStore) -> None:
        await begin(store)
        for options in ({"limit": -1}, {"after": -1}, {"before": -1}, {"limit": True}):
            with pytest.raises(InvalidInput):
                await store.events(REF, **options)
        with pytest.raises(InvalidInput):
            await store.list_threads("acme", limit=-1)
        with pytest.raises(InvalidInput):
            await store.find_documents("acme", offset=-1)
        with pytest.raises(InvalidInput):
            await store.summaries(REF, limit=-1)

    async def test_a_change_to_what_is_no_status_or_of_no_revision_is_refused(self, store: StateStore) -> None:
        await begin(store)
        for change in (
            {"status": "gone"},
            {"status": "archived"},
            {"status": 5},
            {"expected_revision": "1"},
            {"expected_revision": 2**70},
        ):
            with pytest.raises(InvalidInput):
                await store.update_thread(REF, now=NOW, **change)
        assert await store.get_thread(REF) == thread()
        with pytest.raises(InvalidInput):
            await store.save_document(document(), expected_generation="1")  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            await store.delete_document("acme", "d1", expected_generation=2**70)
        with pytest.raises(InvalidInput):
            await store.fold(
                REF, summary(1), expected_folded_through=0, now=NOW, expected_created_at=NOW.replace(tzinfo=None)
            )

    async def test_what_is_of_another_class_is_refused_by_its_name(self, store: StateStore) -> None:
        await begin(store)
        odd: Any = {"id": "t1"}
        for field, call in (
            ("thread", store.create_thread(odd)),
            ("ref", store.get_thread(odd)),
            ("ref", store.append(odd, [event("m1")], now=NOW)),
            ("events", store.append(REF, odd, now=NOW)),
            ("summary", store.fold(REF, odd, expected_folded_through=0, now=NOW)),
            ("document", store.save_document(odd, expected_generation=None)),
            ("ids", store.find_events(REF, None)),  # type: ignore[arg-type]
            ("kind", store.list_threads("acme", "thread!")),  # type: ignore[arg-type]
            ("status", store.list_threads("acme", status="gone")),  # type: ignore[arg-type]
            ("limit", store.list_threads("acme", limit=None)),  # type: ignore[arg-type]
            ("after", store.list_threads("acme", after="t1")),  # type: ignore[arg-type]
            ("after", store.list_threads("acme", after=(NOW.replace(tzinfo=None), "t1"))),
            (
                "after",
                store.find_documents("acme", after=("s", "")),
            ),
            ("expected_revision", store.delete_thread(REF, expected_revision=2**70)),
            ("expected_created_at", store.delete_thread(REF, expected_created_at=NOW.replace(tzinfo=None))),
        ):
            with pytest.raises((InvalidInput, InvalidType)) as caught:
                await call
            assert caught.value.field == field
        assert await store.get_thread(REF) == thread()

    async def test_ids_that_nothing_can_have_are_not_found(self, store: StateStore) -> None:
        await begin(store)
        await store.append(REF, [event("m1")], now=NOW)
        odd = ["", "\ud800", "a\x00b", "m1 ", "M1"]
        assert await store.find_events(REF, odd) == []
        assert await store.delete_events(REF, odd) == 0
        assert await store.get_documents("acme", odd) == []
        assert await said(store) == ["m1"]

    @pytest.mark.parametrize("kind", list(ThreadKind))
    async def test_what_is_not_there_is_nothing(self, store: StateStore, kind: ThreadKind) -> None:
        ref = ThreadRef("acme", "nobody", kind)
        assert await store.get_thread(ref) is None
        assert await store.list_threads("acme", kind) == []
        assert not await store.update_thread(ref, now=NOW, status=ThreadStatus.ARCHIVED)
        assert not await store.delete_thread(ref)
        assert await store.events(ref) == await store.find_events(ref, ["m1"]) == []
        assert await store.system_events(ref, before=9) == []
        assert await store.summaries(ref) == []
        assert await store.delete_events(ref, ["m1"]) == 0
        assert await store.live_size(ref) == (0, 0)
        assert not await store.fold(ref, summary(1), expected_folded_through=0, now=NOW)
        assert not await store.unfold(ref, expected_folded_through=0, now=NOW)
        found = event("m1", index=1)
        assert not await store.replace_events(ref, [found], expected=[found])
        assert await store.find_documents("acme") == []
        assert not await store.delete_document("acme", "d1")
