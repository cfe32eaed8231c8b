from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.conversation.compaction import (
    COMPACTION_KEY,
    compact_event,
    compaction_of,
    complete_compaction,
    decompress_event,
    is_compacted,
)
from lamina.domain.message import (
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
)
from lamina.domain.message_size import message_tokens
from lamina.domain.storable import storable_event
from lamina.domain.thread import ThreadEvent
from lamina.errors import InvalidInput
from lamina.providers.tokens import EstimateCounter

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
count = EstimateCounter().count
LONG = "The harbour lamp is cracked, and nobody has a spare one. " * 10

extras = st.dictionaries(st.text(max_size=4), st.none() | st.integers(-9, 9) | st.text(max_size=5), max_size=2)
words = st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=400)
parts = st.one_of(
    st.builds(TextPart, words, extras),
    st.builds(ReasoningPart, words, extras),
    st.builds(ImagePart, url=st.none() | words, data=st.none() | words, width=st.none() | st.integers(1, 4000)),
    st.builds(FilePart, name=st.none() | words, text=st.none() | words, extra=extras),
    st.builds(OpaquePart, st.sampled_from(["audio", "server_tool_use"]), extras),
)
messages = st.builds(
    Message,
    st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL]),
    words | st.lists(parts, max_size=4),
    id=st.just("m1"),
    tool_calls=st.lists(st.builds(ToolCall, words, words, words), max_size=2),
    tool_call_id=st.none() | st.just("c1"),
)
states = st.dictionaries(
    st.text(max_size=5).filter(lambda key: not key.startswith("__")), st.integers() | words, max_size=3
)


def event_of(content, **state):
    message = Message(Role.USER, content, id="m1", index=12)
    return ThreadEvent(message, state, message_tokens(message, count), "estimate")


def compacted(event, label="a label", **options):
    return compact_event(event, label, count=count, now=NOW, **options)


@given(messages, states, words)
def test_compacting_and_restoring_is_the_identity_on_content_and_state(message, state, label):
    event = ThreadEvent(message, state, message_tokens(message, count), "estimate")
    assert decompress_event(compacted(event, label)) == event


@given(messages, words)
def test_it_survives_storage_and_never_grows(message, label):
    kept = storable_event(ThreadEvent(message)).message  # cleaned, which may change its size
    event = ThreadEvent(kept, {}, message_tokens(kept, count), "estimate")
    stored = storable_event(compacted(event, label))
    assert decompress_event(stored) == event
    assert stored.tokens <= event.tokens
    record = compaction_of(stored)
    assert record is None or record.tokens_saved == event.tokens - stored.tokens > 0


@given(messages, words)
def test_role_id_tool_calls_and_the_answered_call_stay(message, label):
    after = compacted(ThreadEvent(message), label).message
    assert after.replace(content="") == message.replace(content="")


def test_the_reference_shows_the_label_and_by_what_to_ask_for_the_original():
    event = compacted(event_of(LONG, issue="lamp"), "a cracked lamp")
    assert event.message.content == "[COMPACTED: a cracked lamp; expand #12]"
    assert event.state["issue"] == "lamp"
    record = event.state[COMPACTION_KEY]
    assert record["original_content"] == LONG
    assert record["compacted_at"] == "2026-03-01T09:00:00+00:00"
    assert record["strategy"] == "reference"
    assert record["tokens_saved"] == record["original_tokens"] - record["compacted_tokens"] > 0


@pytest.mark.parametrize("content", ["", "short", []], ids=["empty", "shorter than its reference", "no parts"])
def test_what_would_save_nothing_is_left_alone(content):
    event = event_of(content)
    assert compacted(event) is event


def test_what_is_compacted_is_not_compacted_again():
    once = compacted(event_of(LONG))
    assert compacted(once, "x") is once


def test_a_record_in_camel_case_is_read():
    message = Message(Role.USER, "[COMPACTED: timeout report]", id="m1")
    record = {"originalContent": LONG, "tokensSaved": 23, "compactedAt": "2024-01-15T10:30:00Z"}
    event = ThreadEvent(message, {"issue": "db_timeout", COMPACTION_KEY: record})
    assert compaction_of(event).tokens_saved == 23
    assert decompress_event(event).message.content == LONG
    assert decompress_event(event).state == {"issue": "db_timeout"}


@pytest.mark.parametrize("record", [None, {}, "text", {"original_content": 5}, {"original_content": [{"no": "type"}]}])
def test_a_record_without_an_original_is_refused_by_name(record):
    event = ThreadEvent(Message(Role.USER, "x", id="m1"), {COMPACTION_KEY: record})
    assert is_compacted(event)
    with pytest.raises(InvalidInput, match="m1"):
        decompress_event(event)


def test_what_code_of_a_host_leaves_out_or_makes_up_is_filled_in_truly():
    event = event_of(LONG, kept=1)
    theirs = event.replace(
        message=event.message.replace(content="[COMPACTED: code]", role=Role.SYSTEM, id="other"),
        state={COMPACTION_KEY: {"originalContent": "not it", "tokensSaved": 9999, "strategy": "code_compression"}},
    )
    done = complete_compaction(event, theirs, count=count, now=NOW)
    assert (done.message.role, done.message.id, done.message.content) == (Role.USER, "m1", "[COMPACTED: code]")
    assert done.state["kept"] == 1
    assert done.state[COMPACTION_KEY]["strategy"] == "code_compression"
    assert decompress_event(done) == event


def test_code_of_a_host_that_makes_it_longer_changes_nothing():
    event = event_of("short")
    assert complete_compaction(event, event_of(LONG), count=count, now=NOW) is event
