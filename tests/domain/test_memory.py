from datetime import UTC, datetime, timedelta

from lamina.domain.memory import Layer, MemoryEntry

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_layers_stand_in_the_order_of_their_priority():
    assert list(Layer) == ["working", "session", "longterm", "organizational", "global"]


def test_a_memory_is_absent_from_the_instant_of_its_expiry():
    entry = MemoryEntry(id="m1", content="x", created_at=NOW, updated_at=NOW, expires_at=NOW)
    assert [entry.is_expired(NOW + timedelta(microseconds=by)) for by in (-1, 0, 1)] == [False, True, True]
    assert not entry.replace(expires_at=None).is_expired(NOW)


def test_a_changed_copy_leaves_the_memory_alone():
    entry = MemoryEntry(id="m1", content="x", created_at=NOW, updated_at=NOW)
    changed = entry.replace(content="y", tags=["a"])
    assert (entry.content, entry.tags, changed.content, changed.tags) == ("x", [], "y", ["a"])
    assert entry.digest == entry.replace(content=" x ").digest != changed.digest


def test_memories_have_lists_of_their_own():
    one, other = (MemoryEntry(id=id, content="x", created_at=NOW, updated_at=NOW) for id in "ab")
    one.tags.append("a")
    one.metadata["a"] = 1
    assert (other.tags, other.metadata) == ([], {})


def test_an_entry_shows_itself_in_one_line():
    at = datetime(2026, 3, 1, tzinfo=UTC)
    short = MemoryEntry("m1", "tea", created_at=at, updated_at=at)
    assert repr(short) == "MemoryEntry(id='m1', owner='default', layer='longterm', content='tea')"
    long = short.replace(content="x" * 1000, embedding=[0.5] * 384)
    assert len(repr(long)) < 150
    assert repr(long).endswith("x…')")
