"""A person who is erased is gone from every file, and comes back by no export."""

from __future__ import annotations

import asyncio
import io
import logging
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lamina.domain.api_token import ApiToken, TokenScope, token_digest
from lamina.domain.idempotency import KeptResponse
from lamina.importers.ndjson import export_ndjson, import_ndjson
from lamina.kernel import Kernel
from lamina.kernel.stores import server_store_of
from lamina.providers.resilience import CachingEmbedder, EmbeddingCache

PLACES = (
    "content former message summary-of session document chunk-title pack description "
    "packmemory tag metakey metavalue source id threadid docid derived shared answer token label working"
).split()
CANARY = {place: f"zaubernuss{place.replace('-', '')}x{number:03d}" for number, place in enumerate(PLACES)}
OWNER = "zaubernussowner.mira@example.org"


class Letters:
    """An embedder whose vectors are counts of letters."""

    provider, model = "tests", "letters"

    async def embed_documents(self, texts):
        return [[float(text.count(letter)) + 0.1 for letter in "aeiou"] for text in texts]

    async def embed_query(self, text):
        return (await self.embed_documents([text]))[0]


@pytest.fixture
def embedder() -> CachingEmbedder:
    return CachingEmbedder(Letters(), EmbeddingCache())


def kernel(folder: Path, embedder: CachingEmbedder) -> Kernel:
    memory: dict[str, Any] = {"embed": embedder, "working_storage": "adapter"}
    return Kernel(data_dir=folder, memory=memory, conversation={"window": 4})


async def plant(opened: Kernel) -> None:
    """A canary by every way in, and something of others that must stay."""
    engine = opened.memory_engine
    own = await engine.store(
        f"{CANARY['former']} was said first",
        owner=OWNER,
        id=CANARY["id"],
        tags=[CANARY["tag"]],
        metadata={CANARY["metakey"]: {"deep": CANARY["metavalue"]}},
        source=CANARY["source"],
    )
    assert own is not None
    await engine.update(own, content=f"{CANARY['content']} is the text now", owner=OWNER)
    await engine.store(f"{CANARY['working']} is at work", owner=OWNER, layer="working")
    await engine.store(f"{CANARY['derived']} was derived", owner="tomas", derived_from=[own])
    await engine.store("Tomas swims on Mondays", owner="tomas")
    threads = opened.conversation
    for number in range(12):
        text = f"{CANARY['message']} and {CANARY['summary-of']} number {number}"
        await threads.add_message_to_thread(CANARY["threadid"], "user", text, owner=OWNER)
    await threads.add_message_to_thread("kept", "user", "Tomas says hello", owner="tomas")
    await opened.sessions(OWNER).add(
        {"role": "user", "content": f"{CANARY['session']} in a session"}, "session-of-mira"
    )
    document = f"# {CANARY['chunk-title']}\n\n{CANARY['document']} stands here."
    await opened.rag.ingest(document, f"{CANARY['docid']}.md", owner=OWNER)
    await opened.packs.create("health", "user", owner=OWNER, description=CANARY["description"], tags=[CANARY["pack"]])
    await opened.packs.add("health", f"{CANARY['packmemory']} in a pack", owner=OWNER)
    await opened.packs.create("everybody", "domain")
    told = await engine.store(f"{CANARY['shared']} was told to all", owner=OWNER, layer="organizational")
    entry = await engine.get(str(told))
    assert entry is not None
    await opened.packs.import_entries("everybody", [entry])


async def plant_answers(opened: Kernel) -> None:
    now = datetime.now(UTC)
    async with server_store_of(opened.config) as server:
        token = ApiToken(
            id="t1",
            tenant="default",
            owner=OWNER,
            scopes=frozenset({TokenScope.READ}),
            digest=token_digest("secret"),
            label=CANARY["label"],
            created_at=now,
        )
        await server.add_token(token)
        begun = await server.begin("default", "caller", "key", "f", now=now, lease_until=now + timedelta(minutes=1))
        assert begun.claim is not None
        answer = KeptResponse(200, (), CANARY["answer"].encode())
        await server.finish("default", "caller", "key", begun.claim, response=answer)


def traces(folder: Path) -> list[str]:
    """Which canaries stand in which file below the folder, in any case."""
    words = [*CANARY.values(), OWNER]
    return [
        f"{path.name}: {word}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for word in words
        if word.casefold().encode() in path.read_bytes().lower()
    ]


async def test_no_byte_of_an_erased_owner_is_left_in_any_file_and_no_export_brings_it_back(
    tmp_path: Path, embedder: CachingEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with kernel(tmp_path / "kept", embedder) as opened:
        await plant(opened)
        await plant_answers(opened)
        planted = {line.split(": ")[1] for line in traces(tmp_path)}
        assert planted >= set(CANARY.values()) - {CANARY["token"]} | {OWNER}  # so the search can fail
        cached = len(embedder._cache)
        receipt = await opened.erase(OWNER)
        assert traces(tmp_path) == []
        assert receipt.is_complete, receipt
        assert receipt.before == {
            "memories": 3,
            "threads": 1,
            "sessions": 1,
            "documents": 1,
            "chunks": 1,
            "packs": 1,
            "tokens": 1,
            "kept_answers": 1,
        }
        assert set(receipt.after.values()) == {0}
        assert (receipt.derived, receipt.bytes_left, receipt.cached_vectors >= cached) == (2, 0, True)
        assert (cached > 0, len(embedder._cache), receipt.looked_for > 10) == (True, 0, True)
        shown = repr(receipt)
        assert not [word for word in (*CANARY.values(), OWNER) if word in shown or word in caplog.text]
        await opened.backup(tmp_path / "after.db")
        newer = io.StringIO()
        await export_ndjson(opened.memory_engine, newer)
        assert "zaubernuss" not in newer.getvalue()


async def test_an_older_export_does_not_bring_an_erased_owner_back_unless_it_is_asked_to(
    tmp_path: Path, embedder: CachingEmbedder
) -> None:
    async with kernel(tmp_path, embedder) as opened:
        await plant(opened)
        older = io.StringIO()
        await export_ndjson(opened.memory_engine, older)
        lines = older.getvalue().splitlines(keepends=True)
        await opened.erase(OWNER)
        merged = await import_ndjson(opened.memory_engine, lines)
        assert (merged.erased, merged.skipped, merged.written) == (4, 1, 0)
        assert traces(tmp_path) == []
        assert (await import_ndjson(opened.memory_engine, lines, revive=True)).written == 4
        await opened.memory_engine.store("mira came back", owner=OWNER)  # who may begin anew
        assert (await opened.check_integrity()).is_sound
    async with kernel(tmp_path, embedder) as opened:
        assert (await opened.erase(OWNER)).before["memories"] == 4
        assert [each.content for each in await opened.conversation.history("kept", owner="tomas")] == [
            "Tomas says hello"
        ]
        assert [each.content for each in await opened.memory_engine.query(owner="tomas")] == ["Tomas swims on Mondays"]


async def test_a_log_that_another_reads_is_told_as_pending_and_done_when_it_is_run_again(
    tmp_path: Path, embedder: CachingEmbedder
) -> None:
    memory: dict[str, Any] = {"embed": embedder, "options": {"busy_timeout": 0.05}}
    async with Kernel(data_dir=tmp_path, memory=memory) as opened:
        await opened.memory_engine.store(f"{CANARY['content']} is here", owner=OWNER)
        with closing(sqlite3.connect(tmp_path / "lamina.db")) as reading:
            reading.execute("BEGIN")
            reading.execute("SELECT count(*) FROM lamina_memories").fetchone()
            receipt = await opened.erase(OWNER)
            assert (receipt.is_complete, receipt.after["memories"]) == (False, 0)
            assert "still read by another process" in receipt.pending[0]
            reading.rollback()
        again = await opened.erase(OWNER)
        assert again.is_complete, again
        assert await asyncio.to_thread(traces, tmp_path) == []


async def test_in_postgresql_everything_of_an_owner_goes_and_the_receipt_says_what_stays(
    postgres_url: str, postgres_schema: str, embedder: CachingEmbedder
) -> None:
    memory = {"embed": embedder, "url": postgres_url, "options": {"schema": postgres_schema}}
    async with Kernel(memory=memory, conversation={"window": 4}) as opened:
        await plant(opened)
        receipt = await opened.erase(OWNER)
        assert receipt.is_complete, receipt
        assert (receipt.before["threads"], receipt.before["packs"], receipt.derived) == (1, 1, 2)
        assert (receipt.bytes_left, [each for each in receipt.notes if "archives of its log" in each] != []) == (
            None,
            True,
        )
        assert (await opened.check_integrity()).is_sound
        assert [each.content for each in await opened.memory_engine.query(owner="tomas")] == ["Tomas swims on Mondays"]
