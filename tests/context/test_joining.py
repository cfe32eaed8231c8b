from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lamina.context.candidates import chunk_candidates, memory_candidates, pack_candidates
from lamina.context.joining import Joiner
from lamina.domain.context import DropReason, PackHit
from lamina.domain.document import RagChunk
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.message import Message

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def entry(id, content="x", layer=Layer.LONGTERM, key=None, **fields):
    metadata = {} if key is None else {"key": key}
    return MemoryEntry(
        id=id, content=content, created_at=NOW, updated_at=NOW, layer=layer, metadata=metadata,
        **{"owner": "ana", **fields},
    )  # fmt: skip


def chunk(id, content):
    return RagChunk(id, content, "guide.md", 0.5, "d", 0, 0, 1)


def join(candidates, messages=(), **options):
    joiner = Joiner(now=NOW, count=len, **{"near": 0.9, **options})
    kept, dropped = joiner.join(candidates, messages)
    return [each.id for each in kept], [(each.id, each.reason, each.of) for each in dropped]


def test_equal_texts_are_shown_once_by_the_higher_layer_across_all_sources():
    same = "Releases  go out\non Tuesdays"
    candidates = [
        *memory_candidates([entry("w", same, Layer.WORKING), entry("g", "Releases go out on Tuesdays", Layer.GLOBAL)]),
        *pack_candidates([PackHit("p", "pack", same, 0.5)]),
        *chunk_candidates([chunk("c", same)]),
    ]
    for near in (None, 0.9):
        assert join(candidates, near=near) == (
            ["w"], [(id, DropReason.DUPLICATE, "w") for id in ("g", "p", "c")],
        )  # fmt: skip


def test_what_a_live_message_says_is_not_said_again():
    messages = [Message.user("Releases go out on Tuesdays").replace(id="m7")]
    candidates = memory_candidates([entry("a", "Releases go out  on Tuesdays")])
    assert join(candidates, messages) == ([], [("a", DropReason.DUPLICATE, "m7")])


def test_near_texts_are_joined_only_if_wanted():
    text = "The deployment runs every Tuesday evening after the board has signed the list, and the team on duty watches"
    candidates = memory_candidates([entry("a", text), entry("b", f"{text} it")])
    assert join(candidates) == (["a"], [("b", DropReason.DUPLICATE, "a")])
    assert join(candidates, near=None) == (["a", "b"], [])


def test_the_same_key_in_a_higher_layer_overrides():
    candidates = memory_candidates(
        [entry("l", "I use light", key="theme"), entry("o", "We use dark", Layer.ORGANIZATIONAL, "theme", owner="team")]
    )
    assert join(candidates) == (["l"], [("o", DropReason.OVERRIDDEN, "l")])


def test_the_same_key_in_the_same_layer_does_not_override():
    candidates = memory_candidates([entry("a", "first", key="OPS"), entry("b", "second", key="OPS")])
    assert join(candidates)[0] == ["a", "b"]


@pytest.mark.parametrize(("owner", "kept"), [("team", ["o"]), ("mallory", ["o", "g"])])
def test_a_shared_memory_overrides_only_its_own_owners(owner, kept):
    candidates = memory_candidates([
        entry("o", "ours", Layer.ORGANIZATIONAL, "tone", owner=owner),
        entry("g", "theirs", Layer.GLOBAL, "tone", owner="team"),
    ])  # fmt: skip
    assert join(candidates)[0] == kept


@pytest.mark.parametrize("key", [3, "", None, ["theme"], {"a": 1}])
def test_a_key_that_is_no_text_is_none(key):
    odd = [entry("a", "one", Layer.WORKING), entry("b", "two")]
    odd = [each.replace(metadata={"key": key}) for each in odd]
    assert join(memory_candidates(odd))[0] == ["a", "b"]


def test_what_was_superseded_or_is_out_of_date_is_left_out_and_says_so():
    candidates = memory_candidates([
        entry("a", "old", superseded_by="b"), entry("b", "new"), entry("c", "until now", valid_until=NOW),
        entry("d", "until later", valid_until=NOW + timedelta(seconds=1)),
    ])  # fmt: skip
    assert join(candidates) == (["b", "d"], [("a", DropReason.SUPERSEDED, "b"), ("c", DropReason.OUTDATED, None)])


def test_an_overridden_duplicate_does_not_override_others():
    candidates = memory_candidates([
        entry("a", "same text"), entry("b", "same text", Layer.ORGANIZATIONAL, "k", owner="team"),
        entry("c", "other text", Layer.GLOBAL, "k", owner="team"),
    ])  # fmt: skip
    assert join(candidates)[0] == ["a", "c"]


def test_close_vectors_are_joined_only_if_wanted():
    candidates = memory_candidates([entry("a", "one"), entry("b", "two"), entry("c", "three")])
    vectors = {"a": [1.0, 0.0], "b": [0.99, 0.1], "c": [0.0, 1.0]}
    assert join(candidates, near_cosine=0.95, vectors=vectors) == (["a", "c"], [("b", DropReason.DUPLICATE, "a")])
    assert join(candidates, vectors=vectors)[0] == ["a", "b", "c"]
