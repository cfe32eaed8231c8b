"""The shared write rules, over the smallest backend that can read records and commit changes of them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from lamina.adapters._shared.directions import rank_by_closeness
from lamina.adapters._shared.entry_text import entry_of_text, pack, text_of_entry
from lamina.adapters._shared.record_adapter import RecordAdapter
from lamina.adapters._shared.records import Commit, Control, Stale, Stored, TooLarge
from lamina.adapters._shared.threads import Threads
from lamina.domain.filters import MemoryFilter
from lamina.domain.instants import to_micros
from lamina.domain.lexical import index_terms
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, AdapterUnavailable, InvalidInput
from lamina.ports.memory_adapter import Capability, ListOptions, Order, SearchOptions
from lamina.testing import MemoryAdapterContract
from lamina.testing.memory_contract.batches import BatchContract
from lamina.testing.memory_contract.concurrency import ConcurrencyContract
from lamina.testing.memory_contract.history import HistoryContract
from lamina.testing.memory_contract.material import NOW, memory
from lamina.testing.memory_contract.writing import DuplicateContract, WritingContract


class RecordsInADict(RecordAdapter):
    """Everything under one lock for each primitive, and nothing held between two of them."""

    name = "records"
    capabilities = frozenset(Capability) - {Capability.EXPIRY, Capability.PERSISTENCE}

    def __init__(self) -> None:
        super().__init__()
        self._records = {}
        self._controls = {}
        self._past = {}
        self._seq = 0
        self._writes = 0
        self._lock = threading.Lock()
        self.stale_commits = 0

    def _open(self):
        pass

    def _shut(self):
        pass

    @contextmanager
    def _translated(self) -> Iterator[None]:
        yield

    def _load(self, tenant, ids):
        with self._lock:
            found = [self._records[tenant, id] for id in ids if (tenant, id) in self._records]
        return [Stored(self._kept(each.entry), each.version) for each in found]

    def _load_controls(self, tenant, keys):
        with self._lock:
            return {key: self._controls[tenant, key] for key in keys if (tenant, key) in self._controls}

    def _reserve(self, number):
        with self._lock:
            self._seq += number
            return self._seq - number + 1

    def _commit(self, commit: Commit):
        tenant = commit.tenant
        with self._lock:
            stored = [(self._records.get((tenant, each.id)), each.old) for each in commit.changes]
            stored += [(self._controls.get((tenant, each.key)), each.old) for each in commit.controls]
            if self.stale_commits or any(_version(now) != _version(then) for now, then in stored):
                self.stale_commits = max(0, self.stale_commits - 1)
                raise Stale
            self._writes += 1
            for each in commit.changes:
                key = tenant, each.id
                if each.forgets:
                    self._past.pop(key, None)
                if each.new is None:
                    self._records.pop(key, None)
                else:
                    self._records[key] = Stored(self._kept(each.new), self._writes)
                self._past.setdefault(key, []).extend(each.past)
            for each in commit.controls:
                if each.value is not None:
                    self._controls[tenant, each.key] = Control(each.value, self._writes)

    def _kept(self, entry):
        return entry_of_text(text_of_entry(entry), None if entry.embedding is None else pack(entry.embedding))

    def _admitted(self, scope, filter: MemoryFilter):
        with self._lock:
            entries = [self._kept(each.entry) for (tenant, _), each in self._records.items() if tenant == scope.tenant]
        return sorted((each for each in entries if filter.admits(scope, each)), key=lambda each: each.seq)

    def _alike(self, scope, layer, digests):
        with self._lock:
            found = [
                Stored(self._kept(each.entry), each.version)
                for (tenant, _), each in self._records.items()
                if tenant == scope.tenant
            ]
        alike = [each for each in found if each.entry.layer is layer and each.entry.digest in digests]
        return sorted((each for each in alike if scope.admits(each.entry)), key=lambda each: each.entry.seq)

    def _select(self, options: ListOptions):
        found = self._admitted(options.scope, options.filter)
        found = [each for each in found if each.seq > (options.after or 0)]
        if options.order is Order.RELEVANCE:
            found.sort(key=lambda each: (-each.relevance, -to_micros(each.created_at), each.id))
        page = found[options.offset : options.offset + options.limit]
        return page if options.include_embeddings else [each.replace(embedding=None) for each in page]

    def _count(self, scope, filter):
        return len(self._admitted(scope, filter))

    def _nearest(self, embedding, options: SearchOptions):
        found = self._admitted(options.scope, options.filter)
        if any(each.embedding is not None and len(each.embedding) != len(embedding) for each in found):
            return []
        return rank_by_closeness(embedding, found, options.limit, include_embeddings=options.include_embeddings)

    def _holding(self, words, options):
        found = self._admitted(options.scope, options.filter)
        kept = found if options.include_embeddings else [each.replace(embedding=None) for each in found]
        return [each for each in kept if not set(words).isdisjoint(index_terms(each.content))]

    def _frequencies(self, scope, words, now):
        texts = [set(index_terms(each.content)) for each in self._admitted(scope, MemoryFilter(now=now))]
        return {word: sum(word in text for text in texts) for word in words}

    def _history(self, tenant, id):
        with self._lock:
            return [self._kept(each) for each in self._past.get((tenant, id), [])]


def _version(stored):
    return None if stored is None else stored.version


class TestRecordsInADict(MemoryAdapterContract):
    @pytest.fixture
    async def adapter(self) -> AsyncIterator[RecordsInADict]:
        adapter = RecordsInADict()
        await adapter.initialize()
        yield adapter
        await adapter.close()


class InGroups(RecordsInADict):
    """A backend that commits three entries at a time."""

    capabilities = RecordsInADict.capabilities - {Capability.TRANSACTIONS}
    group = 3


class TestRecordsInGroups(WritingContract, DuplicateContract, BatchContract, HistoryContract, ConcurrencyContract):
    """What is written, since it goes in groups; it is read as ever."""

    @pytest.fixture
    async def adapter(self) -> AsyncIterator[InGroups]:
        adapter = InGroups()
        await adapter.initialize()
        yield adapter
        await adapter.close()


@pytest.fixture
async def records() -> AsyncIterator[RecordsInADict]:
    adapter = RecordsInADict()
    await adapter.initialize()
    yield adapter
    await adapter.close()


async def test_a_write_is_worked_out_anew_when_others_were_faster(records, entry):
    records.stale_commits = 5
    await records.store(Scope("acme"), entry)
    assert records.stale_commits == 0
    assert (await records.get(Scope("acme"), entry.id)).revision == 1


async def test_a_write_that_never_gets_its_turn_says_so_and_writes_nothing(records, entry, monkeypatch):
    monkeypatch.setattr("lamina.adapters._shared.record_adapter.PATIENCE", 0.05)
    records.stale_commits = 10**9
    with pytest.raises(AdapterUnavailable, match="others kept changing"):
        await records.store(Scope("acme"), entry)
    assert await records.get(Scope("acme"), entry.id) is None


class OfThreeChanges(InGroups):
    """A backend that takes no more than three changes at once, whatever a group was thought to be."""

    group = 10

    def __init__(self, most=3):
        super().__init__()
        self.most = most
        self.sizes = []

    def _commit(self, commit: Commit):
        if len(commit.changes) > self.most:
            raise TooLarge
        self.sizes.append(len(commit.changes))
        super()._commit(commit)


async def test_a_group_that_is_too_large_for_a_commit_is_written_in_halves():
    adapter = OfThreeChanges()
    await adapter.initialize()
    batch = [memory(f"m{number}") for number in range(13)]
    assert await adapter.store_many(Scope("acme"), batch) == [None] * 13
    assert adapter.sizes == [2, 3, 2, 3, 3]
    options = ListOptions(scope=Scope("acme"), filter=MemoryFilter(now=NOW), limit=100)
    assert [each.id for each in await adapter.list(options)] == [each.id for each in batch]
    assert await adapter.delete_many(Scope("acme"), [each.id for each in batch]) == [True] * 13
    await adapter.close()


async def test_one_change_that_is_too_large_for_a_commit_is_refused(entry):
    adapter = OfThreeChanges(most=0)
    await adapter.initialize()
    with pytest.raises(InvalidInput, match="more than records writes at once"):
        await adapter.store(Scope("acme"), entry)
    await adapter.close()


class Slow(RecordsInADict):
    """A backend whose counts take until they are told to end, and which is of no use once it is shut."""

    def __init__(self):
        super().__init__()
        self._size = 1
        self.counting, self.may_end = threading.Event(), threading.Event()
        self.opened = 0

    def _open(self):
        self.opened += 1

    def _shut(self):
        self.opened -= 1

    def _count(self, scope, filter):
        self.counting.set()
        self.may_end.wait(30)
        assert self.opened == 1
        return super()._count(scope, filter)


async def test_closing_waits_for_what_has_begun_and_for_nothing_else():
    adapter = Slow()
    await adapter.initialize()
    first, second = (asyncio.create_task(adapter.count(Scope("acme"), MemoryFilter(now=NOW))) for _ in range(2))
    await asyncio.to_thread(adapter.counting.wait, 30)
    closing = asyncio.create_task(adapter.close())
    opening = asyncio.create_task(adapter.initialize())
    await asyncio.sleep(0.05)
    assert not closing.done()
    assert not opening.done()
    adapter.may_end.set()
    assert await first == 0
    with pytest.raises(AdapterError, match="not open"):
        await second
    await closing
    await opening
    assert adapter.opened == 1
    assert await adapter.count(Scope("acme"), MemoryFilter(now=NOW)) == 0
    await adapter.close()
    assert adapter.opened == 0


async def test_a_call_that_is_cancelled_ends_when_its_work_has():
    threads = Threads("records", 2)
    begun, go_on = threading.Event(), threading.Event()
    done = []

    def work():
        begun.set()
        go_on.wait(10)
        done.append("work")

    call = asyncio.ensure_future(threads.run(work))
    await asyncio.to_thread(begun.wait, 10)
    call.cancel()
    await asyncio.sleep(0)
    assert not call.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert done == ["work"]
    await threads.close()


@pytest.fixture
def entry():
    return memory()
