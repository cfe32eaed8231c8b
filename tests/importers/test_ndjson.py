from __future__ import annotations

import contextlib
import io
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.domain.memory import Layer, MemoryEntry, Trust
from lamina.domain.text import is_blank
from lamina.errors import InvalidInput, InvalidType
from lamina.importers.lines import ExactMemory, read_line, write_line
from lamina.importers.ndjson import BadLines, export_ndjson, import_ndjson
from lamina.memory.engine import MemoryEngine
from lamina.memory.factory import create_memory_engine
from lamina.ports.embedder import Fingerprint
from lamina.testing import HashingEmbedder

NOW = datetime(2026, 11, 1, 9, 30, 0, 123456, tzinfo=UTC)


class Frozen:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def embed(text: str) -> list[float]:
    return [0.1 + text.count(letter) / 7 for letter in "aeiounrst"]


async def make(**options: Any) -> MemoryEngine:
    return await create_memory_engine(
        **{"provider": "memory", "embedding": "none", "working_storage": "adapter", "clock": Frozen(), **options}
    )


@pytest.fixture
async def source() -> AsyncIterator[MemoryEngine]:
    async with await make() as engine:
        yield engine


@pytest.fixture
async def target() -> AsyncIterator[MemoryEngine]:
    async with await make() as engine:
        yield engine


async def exported(engine: MemoryEngine, **options: Any) -> str:
    text = io.StringIO()
    await export_ndjson(engine, text, **options)
    return text.getvalue()


FULL = MemoryEntry(
    id="mem_full",
    content="Line\u2028separators, \x85, tabs\t and 灯台 stay as they are\r\n",
    created_at=NOW - timedelta(days=3),
    updated_at=NOW - timedelta(days=1, microseconds=1),
    layer=Layer.ORGANIZATIONAL,
    owner="mira",
    namespace="team:1",
    tags=["b", "a"],
    metadata={"z": 1, "a": {"nested": [1, 2.5, None, True, "x"]}, "big": 2**62},
    relevance=0.1 + 0.2,
    base_relevance=0.9,
    confidence=0.25,
    ttl=604800.0,
    expires_at=NOW + timedelta(days=6),
    last_accessed_at=NOW - timedelta(hours=1),
    access_count=17,
    revision=4,
    occurred_at=NOW - timedelta(days=30),
    valid_until=NOW + timedelta(days=30),
    superseded_by="mem_other",
    source="conversation:ticket-7",
    trust=Trust.UNTRUSTED,
    derived_from=["mem_one", "msg_2"],
)


async def test_a_memory_with_every_field_comes_back_equal(source: MemoryEngine, target: MemoryEngine) -> None:
    await source.restore([FULL])
    await import_ndjson(target, io.StringIO(await exported(source), newline="\n"))
    assert (await target.get("mem_full")).replace(seq=0) == FULL


async def test_export_import_export_is_equal_byte_for_byte(source: MemoryEngine, target: MemoryEngine) -> None:
    await source.restore([FULL])
    await source.store_many([{"content": f"note {n}", "owner": f"o{n % 3}", "ttl": 60 + n} for n in range(450)])
    await source.recall("note 7")
    first = await exported(source)
    await import_ndjson(target, io.StringIO(first))
    assert await exported(target) == first
    assert first.count("\n") == 451


async def test_embedding_what_was_imported_does_not_change_it(source: MemoryEngine) -> None:
    await source.store_many([f"note {number}" for number in range(20)])
    first = await exported(source)
    async with await create_memory_engine(provider="memory", embed=HashingEmbedder()) as target:
        await import_ndjson(target, io.StringIO(first))
        await target.reembed(force=True)
        assert (await target.stats()).without_embedding == 0
        assert await exported(target) == first


async def test_importing_twice_changes_nothing(source: MemoryEngine, tmp_path: Path) -> None:
    await source.restore([FULL])
    file = tmp_path / "memories.ndjson"
    first = await exported(source)
    file.write_text(first, encoding="utf-8", newline="")
    report = await import_ndjson(source, file)
    assert (report.written, report.skipped) == (0, 1)
    assert await exported(source) == first


async def test_replace_overwrites_what_is_there(source: MemoryEngine) -> None:
    await source.restore([FULL])
    line = await exported(source)
    await source.update("mem_full", content="edited since")
    report = await import_ndjson(source, io.StringIO(line), replace=True)
    assert report.written == 1
    assert (await source.get("mem_full")).content == FULL.content


async def test_all_owners_and_namespaces_travel_and_none_is_merged(source: MemoryEngine, target: MemoryEngine) -> None:
    for owner in ("team:1", "team:10"):
        for namespace in ("a", "b"):
            await source.store("the same words", owner=owner, namespace=namespace)
    await import_ndjson(target, io.StringIO(await exported(source)))
    assert await target.count() == 4
    assert await target.count(owner="team:1", namespace="a") == 1


async def test_memories_become_the_importing_tenant_s(source: MemoryEngine) -> None:
    await source.store("said in one tenant")
    async with await make(tenant="other") as other:
        await import_ndjson(other, io.StringIO(await exported(source)))
        assert [entry.tenant async for entry in other.scan()] == ["other"]


async def test_a_scope_bounds_what_is_exported(source: MemoryEngine) -> None:
    await source.store("mira's", owner="mira")
    await source.store("tomas's", owner="tomas")
    lines = (await exported(source, owner="mira")).splitlines()
    assert [json.loads(line)["owner"] for line in lines] == ["mira"]


async def test_expired_memories_are_left_out_unless_asked_for(source: MemoryEngine) -> None:
    await source.restore([FULL.replace(id="gone", ttl=1.0, expires_at=NOW - timedelta(seconds=1)), FULL])
    assert (await exported(source)).count("\n") == 1
    assert (await exported(source, include_expired=True)).count("\n") == 2


async def test_a_bad_line_in_a_file_means_nothing_is_written_and_every_bad_line_is_told(
    target: MemoryEngine, tmp_path: Path
) -> None:
    file = tmp_path / "memories.ndjson"
    file.write_bytes(
        b'{"content": "good"}\n{"content": "cut off\n\n[1]\n{"content": "good too"}\n{"content": "\xff"}\n'
        b'{"lamina": 2, "id": "x"}\n'
    )
    with pytest.raises(BadLines) as caught:
        await import_ndjson(target, file)
    assert [line.number for line in caught.value.lines] == [2, 4, 6, 7]
    assert (caught.value.count, caught.value.written) == (4, 0)
    assert "Nothing was written" in str(caught.value)
    assert await target.count() == 0


async def test_bad_lines_may_be_skipped_and_are_told(target: MemoryEngine, tmp_path: Path) -> None:
    file = tmp_path / "memories.ndjson"
    file.write_text('{"content": "good"}\nnonsense\n{"content": "good too"}\n', encoding="utf-8")
    report = await import_ndjson(target, file, skip_bad_lines=True)
    assert (report.written, [line.number for line in report.bad]) == (2, [2])


async def test_a_stream_is_imported_up_to_its_first_bad_line(target: MemoryEngine) -> None:
    lines = [f'{{"content": "note {n}"}}\n' for n in range(300)] + ["nonsense\n", '{"content": "after"}\n']
    with pytest.raises(BadLines) as caught:
        await import_ndjson(target, iter(lines))
    assert ([line.number for line in caught.value.lines], caught.value.written) == ([301], 300)
    assert "300 memories were written before" in str(caught.value)
    assert await target.count() == 300


async def test_a_file_that_is_not_there_is_refused(target: MemoryEngine, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        await import_ndjson(target, tmp_path / "none")


@pytest.mark.parametrize("key", ["content", "memory", "text"])
async def test_plain_lines_become_new_memories_once(target: MemoryEngine, key: str) -> None:
    line = json.dumps({key: "likes tea", "user_id": "mira", "tags": ["taste"], "hash": "abc", "score": 0.5})
    for _ in range(2):
        await import_ndjson(target, io.StringIO(line))
    (entry,) = [entry async for entry in target.scan()]
    assert (entry.content, entry.owner, entry.tags) == ("likes tea", "mira", ["taste"])
    assert entry.metadata == {"hash": "abc", "score": 0.5}


async def test_the_creation_time_of_a_foreign_memory_becomes_when_it_occurred(target: MemoryEngine) -> None:
    line = {"id": "m-1", "memory": "moved to Izmir", "created_at": "2024-07-01T12:00:00-07:00", "metadata": {"a": 1}}
    await import_ndjson(target, io.StringIO(json.dumps(line)))
    entry = await target.get("m-1")
    assert entry.occurred_at == datetime(2024, 7, 1, 19, tzinfo=UTC)
    assert entry.metadata == {"a": 1}


async def test_a_new_line_that_says_what_is_known_confirms_it(target: MemoryEngine) -> None:
    id = await target.store("likes tea")
    report = await import_ndjson(target, io.StringIO('{"text": "likes  tea"}'))
    assert (report.written, report.confirmed) == (0, 1)
    assert [entry.id async for entry in target.scan()] == [id]


async def test_hooks_guard_new_lines() -> None:
    async with await make(hooks={"on_before_store": lambda _: None}) as engine:
        report = await import_ndjson(engine, io.StringIO('{"text": "secret"}'))
        assert (report.written, report.vetoed) == (0, 1)


async def test_the_same_id_twice_in_one_file_counts_once(target: MemoryEngine) -> None:
    line = write_line(FULL)
    report = await import_ndjson(target, io.StringIO(f"{line}\n{line}\n"))
    assert (report.written, report.skipped) == (1, 1)


async def test_a_byte_order_mark_and_blank_lines_are_passed_over(target: MemoryEngine, tmp_path: Path) -> None:
    file = tmp_path / "x.ndjson"
    file.write_bytes(b'\xef\xbb\xbf{"content": "first"}\r\n\r\n{"content": "second"}')
    assert (await import_ndjson(target, file)).written == 2


async def test_vectors_travel_only_when_asked_for_and_fit_only_their_model() -> None:
    async with await make(embedding=None, embed=embed) as source:
        await source.store("a lamp in the hall")
        plain, with_vectors = await exported(source), await exported(source, with_embeddings=True)
        vector = (await source.get(json.loads(plain)["id"])).embedding
    assert "float32" not in plain
    async with await make(embedding=None, embed=embed) as same:
        report = await import_ndjson(same, io.StringIO(with_vectors))
        assert report.without_vector == 0
        assert list((await same.get(json.loads(plain)["id"])).embedding) == list(vector)
        assert await exported(same, with_embeddings=True) == with_vectors
        assert (await same.recall("lamp in the hall", mode="vector")).degraded == ()
    async with await make(embedding={"model": "another"}, embed=embed) as other:
        await other.store("of another model")
        report = await import_ndjson(other, io.StringIO(with_vectors))
        assert (report.written, report.without_vector) == (1, 1)
        assert (await other.stats()).without_embedding == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"created_at": "2026-01-01T00:00:00"}, "created_at"),
        ({"updated_at": 5}, "updated_at"),
        ({"layer": "attic"}, "layer"),
        ({"trust": "maybe"}, "trust"),
        ({"access_count": -1}, "access_count"),
        ({"revision": True}, "revision"),
        ({"relevance": 2}, "relevance"),
        ({"tags": "x"}, "tags"),
        ({"derived_from": "x"}, "derived_from"),
        ({"content": " "}, "content"),
        ({"unheard_of": 1}, "unheard_of"),
        ({"id": None}, "id"),
        ({"embedding": [1]}, "embedding"),
        ({"embedding": {"provider": "p", "model": "m", "dimensions": 2, "float32": "AAAA"}}, "embedding"),
        ({"embedding": {"provider": "p", "model": "m", "dimensions": 2, "float32": "AAAAAA=="}}, "embedding"),
    ],
)
def test_a_wrong_field_of_an_exported_line_is_named(change: dict[str, Any], field: str) -> None:
    fields = json.loads(write_line(FULL)) | change
    with pytest.raises((InvalidInput, TypeError)) as caught:
        read_line(json.dumps(fields))
    assert caught.value.field == field


@pytest.mark.parametrize("line", ["", "null", "3", '"x"', "{}", '{"content": 3}', '{"content": NaN}', "[" * 100_000])
def test_a_line_that_holds_no_memory_is_refused(line: str) -> None:
    with pytest.raises(InvalidInput):
        read_line(line)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: not is_blank(text)
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    content=TEXT,
    metadata=st.dictionaries(st.text(), JSON, max_size=3),
    moment=st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    relevance=st.floats(0, 1),
    vector=st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=4),
)
def test_every_memory_survives_its_line(
    content: str, metadata: dict[str, Any], moment: datetime, relevance: float, vector: list[float]
) -> None:
    if "\0" in json.dumps(metadata, ensure_ascii=False) or "\\u0000" in json.dumps(metadata):
        return
    entry = MemoryEntry("mem_x", content, moment, moment, metadata=metadata, relevance=relevance, embedding=vector)
    fingerprint = Fingerprint("p", "m", len(vector))
    line = write_line(entry, fingerprint)
    assert "\n" not in line
    read = read_line(line)
    assert isinstance(read, ExactMemory)
    assert (read.fingerprint, list(read.entry.embedding)) == (fingerprint, vector)
    assert read.entry.replace(embedding=vector) == entry
    assert write_line(read.entry, fingerprint) == line


HOSTILE = [
    *("null true 0 -1 1e999 {} [] [[]] [null] [1]".split()),
    "9" * 4200,
    "9" * 5000,
    '"\\ud800"',
    '"\\u0000"',
    '"0001-01-01T00:00:00+14:00"',
    '"9999-12-31T23:59:59-14:00"',
    '{"a": NaN}',
    "[" * 300 + "]" * 300,
    "[" * 950 + "]" * 950,
    '{"a":' * 900 + "1" + "}" * 900,
    "[" * 100_000,
]
FIELDS = [*json.loads(write_line(FULL)), "embedding", "memory", "text", "user_id", "another"]


@pytest.mark.parametrize("base", [json.loads(write_line(FULL)), {"content": "c"}, {"text": "t"}])
@pytest.mark.parametrize("field", FIELDS)
def test_no_value_of_any_field_is_more_than_a_bad_line(base: dict[str, Any], field: str) -> None:
    for value in HOSTILE:
        parts = {name: json.dumps(each) for name, each in base.items()} | {field: value}
        line = "{" + ",".join(f'"{name}":{each}' for name, each in parts.items()) + "}"
        with contextlib.suppress(InvalidInput, InvalidType):
            read_line(line)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("access_count", "9" * 5000),
        ("created_at", '"0001-01-01T00:00:00+14:00"'),
        ("updated_at", '"9999-12-31T23:59:59-14:00"'),
        ("metadata", '{"a":' * 900 + "1" + "}" * 900),
        ("source", "[1]"),
    ],
)
async def test_a_hostile_line_is_told_by_its_number_and_skipped(target: MemoryEngine, field: str, value: str) -> None:
    base = {"content": "x"} if field == "source" else json.loads(write_line(FULL))
    parts = {name: json.dumps(each) for name, each in base.items()}
    hostile = "{" + ",".join(f'"{name}":{each}' for name, each in (parts | {field: value}).items()) + "}"
    lines = ['{"content": "before"}', hostile, '{"content": "after"}']
    report = await import_ndjson(target, iter(lines), skip_bad_lines=True)
    assert (report.written, [line.number for line in report.bad]) == (2, [2])
