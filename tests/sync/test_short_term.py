"""Short-term memory without `await`, and with plain methods as overrides."""

from __future__ import annotations

import pytest

from lamina import sync
from lamina.errors import InvalidInput
from lamina.state.sqlite import SqliteStateStore

SMALL = {"pre_rot_threshold": 400, "recent_to_keep": 2, "hard_limit": 10_000}


def event(number, words=60):
    return {"message": {"role": "user", "content": f"message {number}: " + "lorem ipsum " * words}}


def test_what_is_added_is_listed_compacted_and_restored(tmp_path):
    with sync.SQLiteMemory(tmp_path / "m.db", thresholds=SMALL) as memory:
        kept = [memory.add(event(number), "s") for number in range(8)]
        shown = memory.list(session_id="s")
        assert len(shown) < 8 or any("[COMPACTED" in each.message.text for each in shown)
        assert memory.expand("#1", "s").text == kept[0].message.text
        assert memory.get_session_ids() == ["s"]
        assert memory.counter is memory.asynchronous.counter
    with sync.SQLiteMemory(tmp_path / "m.db") as again:
        assert again.has_session("s")


def test_nothing_needs_to_be_opened_and_errors_come_through():
    memory = sync.InMemoryMemory()
    memory.add({"message": {"role": "user", "content": "hi"}})
    assert memory.get_count() == 1
    with pytest.raises(InvalidInput):
        memory.retrieve(" ")
    memory.close()


def test_plain_overrides_serve_and_may_call_what_they_override():
    seen = []

    class Mine(sync.BaseMemory):
        def compact_event(self, event):
            seen.append(("compact", event.message.index))
            if event.message.index == 1:
                return super().compact_event(event)
            made = self.compact_with(event, label="mine", strategy="own")
            assert made.message.text.startswith("[COMPACTED: mine")
            return made

        def store_summary(self, session_id, summary):
            seen.append(("summary", session_id))
            super().store_summary(session_id, summary)

    with Mine(SqliteStateStore(":memory:"), thresholds=SMALL, enable_context_management=False) as memory:
        for number in range(12):
            memory.add(event(number), "s")
        assert memory.manage_context("s").warnings == []
        assert memory.manage_context("s").warnings == []
        assert ("compact", 1) in seen
        assert ("summary", "s") in seen
        assert ("compact", 2) in seen
        assert memory.archived("s")[0].message.text.startswith("message 0: ")


def test_an_override_that_fails_loses_nothing():
    class Broken(sync.InMemoryMemory):
        def summarize(self, events):
            raise ValueError("no")

    with Broken(thresholds=SMALL, enable_context_management=False) as memory:
        for number in range(12):
            memory.add(event(number), "s")
        assert any("ValueError" in each for each in memory.manage_context("s").warnings)
        assert len(memory.list(session_id="s")) == 12
