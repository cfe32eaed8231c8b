"""What is measured of Lamina alone: growth, contexts, threads, chunking, packs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from speed.dataset import Dataset, Query
from speed.processes import bytes_on_disk, emptied
from speed.records import Record, median_ms, percentile, tell
from speed.references import ExactSearch, PlainTable
from speed.store_jobs import BATCH, WARMED, measure_of
from speed.systems import LAMINA, GivenVectors, Lamina, with_vectors
from speed.timing import alternate, timed

OWNER: Final = "owner0"
THREADS: Final = (50, 500, 5_000, 50_000)
CONTEXT_MEMORIES: Final = 10_000
CONTEXT_CHUNKS: Final = 1_000
BUDGET: Final = 8_000
PAGE: Final = 1_000
ADDED: Final = 40
PRE_ROT: Final = 20_000
PACKS: Final = 200
CHUNKED: Final = 500_000
"""Characters of the text that is cut."""


async def grown(data: Dataset, folder: Path, _seconds: float) -> None:
    """Fill a store of another size, for `growth`."""
    system = Lamina()
    await system.open(emptied(folder))
    seconds = 0.0
    for first in range(0, data.count, BATCH):
        items = data.items(first, first + BATCH)
        with_vectors(system, items)
        seconds += await timed(system.fill(items))
        system.embedder.forget()
    await system.close()
    tell(Record("growth: batch add", LAMINA, data.count, data.count / seconds, "rows/s"))
    tell(Record("growth: disk over raw", LAMINA, data.count, bytes_on_disk(folder) / data.raw_bytes(), "x"))


async def growth(data: Dataset, base: Dataset, folders: tuple[Path, Path], seconds: float) -> None:
    """The store against the smaller one in turn, owners of the same size; and all of it against the exact search."""
    systems = (Lamina(), Lamina())
    asked = (data.queries(), base.queries())
    for system, folder, queries in zip(systems, folders, asked, strict=True):
        with_vectors(system, queries)
        await system.open(folder)
    for mode in ("vector", "text", "hybrid"):
        ways = [_asking(system, queries, mode) for system, queries in zip(systems, asked, strict=True)]
        await alternate(range(WARMED), *ways, seconds=seconds / 2)
        ours, theirs = await alternate(range(len(asked[0])), *ways, seconds=seconds)
        measure = f"growth: {measure_of(mode, scoped=True)}"
        note = f"over that of {base.count:,} memories"
        tell(Record(measure, LAMINA, data.count, median_ms(ours), "ms", median_ms(theirs), note))
    await systems[1].close()
    exact = ExactSearch(data)
    for mode in ("vector", "text", "hybrid"):
        await _unscoped(systems[0], exact, asked[0], mode=mode, seconds=seconds)
    await systems[0].close()


def _asking(system: Lamina, queries: Sequence[Query], mode: str) -> Callable[[int], Awaitable[object]]:
    return lambda number: system.search(queries[number], mode, scoped=True)


async def _unscoped(system: Lamina, exact: ExactSearch, queries: Sequence[Query], *, mode: str, seconds: float) -> None:
    async def ask(query: Query) -> list[str]:
        return await system.search(query, mode, scoped=False)

    await ask(queries[-1])
    ours, theirs = await alternate(queries, ask, exact.search_all, seconds=seconds, block=3)
    memories = exact.size
    measure = f"growth: {measure_of(mode, scoped=False)}"
    tell(Record(measure, LAMINA, memories, median_ms(ours), "ms", median_ms(theirs), f"{len(ours)} times"))


async def context(data: Dataset, folder: Path, seconds: float) -> None:
    """`compute` for an owner with many memories, a thread, and documents; threads of several lengths in turn."""
    from lamina import Kernel

    embedder = GivenVectors()
    queries = data.queries()
    items = data.items(0, CONTEXT_MEMORIES)
    embedder.give([*items, *queries])
    async with Kernel(data_dir=emptied(folder), memory={"embed": embedder}) as kernel:
        for first in range(0, len(items), PAGE):
            page = items[first : first + PAGE]
            await kernel.memory_engine.store_many([{"content": item.text, "owner": OWNER} for item in page])
        texts = [item.text for item in items]
        await _ingested(kernel, texts)
        lengths = [length for length in THREADS if length <= 5 * len(texts)]
        for length in lengths:
            await add_thread(kernel.conversation, f"t{length}", length, texts)
        ways = [_computing(kernel.context_engine, f"t{length}", queries) for length in lengths]
        await alternate(range(5), *ways, seconds=seconds / 4, block=1)
        times = await alternate(range(len(queries)), *ways, seconds=seconds, block=2)
    for length, each in zip(lengths, times, strict=True):
        note = f"p95 {percentile(each, 0.95) * 1_000:.3g} ms, over that with a thread of {lengths[0]}"
        yardstick = median_ms(times[0])
        tell(Record(f"context, thread of {length:,}", LAMINA, len(items), median_ms(each), "ms", yardstick, note))


async def _ingested(kernel: Any, texts: Sequence[str]) -> None:
    """Ten documents of a hundred chunks each."""
    chunks = min(CONTEXT_CHUNKS, len(texts))
    per_document = max(1, chunks // 10)
    for number, first in enumerate(range(0, chunks, per_document)):
        paragraphs = texts[first : first + per_document]
        await kernel.rag.ingest("\n\n".join(paragraphs), f"notes-{number}.md", owner=OWNER, chunk_size=60)


def _computing(engine: Any, thread: str, queries: Sequence[Query]) -> Callable[[int], Awaitable[object]]:
    return lambda number: engine.compute(
        intent_id=f"i{number}",
        goal=queries[number].text,
        owner_id=OWNER,
        thread_id=thread,
        token_budget=BUDGET,
        touch=False,
    )


def messages_of(length: int, texts: Sequence[str]) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    return [{"role": roles[number % 2], "content": texts[number % len(texts)]} for number in range(length)]


async def add_thread(conversation: Any, id: str, length: int, texts: Sequence[str]) -> None:
    messages = messages_of(length, texts)
    for first in range(0, length, PAGE):
        await conversation.add_messages(id, messages[first : first + PAGE], owner=OWNER)


async def threads(data: Dataset, folder: Path, seconds: float) -> None:
    """Add a message to threads of several lengths that token tiers keep short, in turn with a commit."""
    from lamina.conversation.manager import ConversationManager
    from lamina.settings.tiers import ContextThresholds
    from lamina.state.sqlite import SqliteStateStore

    items = data.items(0, min(data.count, 2_000))
    texts = [item.text for item in items]
    plain = PlainTable(emptied(folder) / "plain.db")
    async with SqliteStateStore(folder / "threads.db") as store:
        tiers = ContextThresholds(pre_rot_threshold=PRE_ROT)
        manager = ConversationManager(store, context_engineering=tiers)
        for length in THREADS:
            await add_thread(manager, f"t{length}", length, texts)
        ways = [_adding(manager, f"t{length}", texts) for length in THREADS]
        numbers = range(min(ADDED, len(items)))
        times = await alternate(numbers, lambda number: plain.add(items[number]), *ways, seconds=seconds, block=4)
        commit = median_ms(times[0])
        for length, each in zip(THREADS, times[1:], strict=True):
            note = f"mean {statistics.fmean(each) * 1_000:.3g} ms"
            tell(Record(f"add to a thread of {length:,}", LAMINA, length, median_ms(each), "ms", commit, note))
        await _thread_contexts(manager, seconds / 2)
    plain.close()


def _adding(manager: Any, thread: str, texts: Sequence[str]) -> Callable[[int], Awaitable[object]]:
    return lambda number: manager.add_message_to_thread(thread, "user", texts[number], owner=OWNER)


async def _thread_contexts(manager: Any, seconds: float) -> None:
    """What a thread gives to a context, for threads of several lengths in turn."""

    def reading(length: int) -> Callable[[int], Awaitable[object]]:
        return lambda _number: manager.get_thread_context(f"t{length}", owner=OWNER)

    times = await alternate(range(40), *map(reading, THREADS), seconds=seconds, block=4)
    for length, each in zip(THREADS, times, strict=True):
        measure = f"assembly of a thread of {length:,}"
        note = f"over that of {THREADS[0]}"
        tell(Record(measure, LAMINA, length, median_ms(each), "ms", median_ms(times[0]), note))


async def chunking(data: Dataset, _folder: Path, _seconds: float) -> None:
    """Cut a made-up document in each way, and one four times as long: the same speed if nothing is quadratic."""
    from lamina.providers.tokens import EstimateCounter
    from lamina.rag.chunking import ChunkOptions, ChunkStrategy, chunk_text

    document = document_of(data.texts(), CHUNKED)
    count = EstimateCounter().count
    for strategy in ChunkStrategy:
        options = ChunkOptions(strategy)
        speeds = []
        for text in (document, document * 4):
            began = time.perf_counter()
            list(chunk_text(text, options, count))
            speeds.append(len(text) / (time.perf_counter() - began) / 1_000_000)
        note = "over that of a text four times as long"
        tell(Record(f"chunking, {strategy.value}", LAMINA, 1, speeds[0], "M characters/s", speeds[1], note))


def document_of(texts: Sequence[str], length: int) -> str:
    """Headings, paragraphs, and a list and a fence now and then."""
    parts, size = [], 0
    for number, text in enumerate(texts * (1 + length // sum(map(len, texts)))):
        part = f"{text.capitalize()}."
        if number % 10 == 0:
            part = f"## {text[:40]}"
        elif number % 10 == 5:
            part = "\n".join(f"- {word}" for word in text.split())
        elif number % 30 == 7:
            part = f"```\n{text}\n```"
        parts.append(part)
        size += len(part) + 2
        if size >= length:
            break
    return "\n\n".join(parts)


async def packs(data: Dataset, folder: Path, seconds: float) -> None:
    """Find the packs that a query is about, among many."""
    from lamina import Kernel

    embedder = GivenVectors()
    queries = data.queries()
    texts = [item.text for item in data.items(0, PACKS)]
    embedder.give(queries)
    async with Kernel(data_dir=emptied(folder), memory={"embed": embedder}) as kernel:
        for number, text in enumerate(texts):
            await kernel.packs.create(f"pack-{number}", "project", description=text)
            await kernel.packs.add_many(f"pack-{number}", [f"{text} {part}" for part in range(5)])
        (times,) = await alternate(queries, lambda query: kernel.packs.discover(query.text), seconds=seconds)
    note = f"p95 {percentile(times, 0.95) * 1_000:.3g} ms"
    tell(Record("discover packs", LAMINA, len(texts), median_ms(times), "ms", note=note))
