"""Bugs that show when calls meet, are cut short, or come from elsewhere; and when it is closed and opened."""

import asyncio

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.domain.memory import UNSET
from lamina.errors import AdapterUnavailable, Conflict
from lamina.ports.memory_adapter import Capability, check_meta_value
from mutants.base import Mutant


class LosesConcurrentWrites(Mutant):
    caught_by = "test_concurrent_writers_lose_nothing"

    async def store(self, scope, entry):
        seq = self._seq
        await asyncio.sleep(0)
        self._seq = seq
        await super().store(scope, entry)


class ListsWhileItWrites(Mutant):
    caught_by = "test_readers_and_writers_do_not_disturb_each_other"

    async def update(self, scope, id, updates, *, expected_revision=None):
        row = self._row(scope, id)
        if row is None:
            return False
        self._tenant(scope).remove(id)
        await asyncio.sleep(0)
        self._tenant(scope).put(row)
        return await super().update(scope, id, updates, expected_revision=expected_revision)


class ComparesThenSets(Mutant):
    caught_by = (
        "test_of_many_who_expect_the_same_revision_one_wins test_who_meets_a_conflict_and_tries_again_loses_nothing"
    )

    async def update(self, scope, id, updates, *, expected_revision=None):
        entry = await self.get(scope, id)
        if entry is not None and expected_revision not in {None, entry.revision}:
            raise Conflict(id, "changed meanwhile")
        await asyncio.sleep(0)
        return await super().update(scope, id, updates)


class LooksThenDeletes(Mutant):
    caught_by = "test_what_changed_since_it_was_listed_is_not_deleted"

    async def delete_many(self, scope, ids, *, filter=None):
        passing = [(row := self._row(scope, id)) is not None and filter.matches(row.entry) for id in ids]
        await asyncio.sleep(0)
        return [passes and await self.delete(scope, id) for id, passes in zip(ids, passing, strict=True)]


class LooksAtTheRevisionThenDeletes(Mutant):
    caught_by = "test_what_changed_since_it_was_listed_is_not_deleted"

    async def delete(self, scope, id, *, expected_revision=None):
        entry = await self.get(scope, id)
        if entry is not None and expected_revision not in {None, entry.revision}:
            raise Conflict(id, "changed meanwhile")
        await asyncio.sleep(0)
        return await super().delete(scope, id)


class ChecksTheMetaThenSaves(Mutant):
    caught_by = "test_of_many_who_expect_the_same_meta_one_wins"

    async def save_meta(self, scope, key, value, now, *, expected=UNSET):
        if expected is not UNSET:
            check_meta_value(key, await self.load_meta(scope, key), expected)
        await asyncio.sleep(0)
        await super().save_meta(scope, key, value, now)


class ChecksTheMetaThenWrites(Mutant):
    caught_by = "test_nothing_is_written_after_the_meta_that_it_expects_has_changed"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        self._expect_meta(scope, expected_meta)
        await asyncio.sleep(0)
        return await super().store_many(scope, entries, if_new=if_new)

    async def update_many(self, scope, updates, *, expected_meta=None):
        self._expect_meta(scope, expected_meta)
        await asyncio.sleep(0)
        return await super().update_many(scope, updates)


class ReadsThenCounts(Mutant):
    caught_by = "test_every_read_is_counted"

    async def touch(self, scope, ids, now):
        for id in ids:
            entry = await self.get(scope, id)
            await asyncio.sleep(0)
            if entry is not None:
                await self.update(scope, id, {"access_count": entry.access_count + 1, "last_accessed_at": now})


class LooksThenStores(Mutant):
    caught_by = "test_of_many_who_say_the_same_one_is_stored"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        found = []
        for entry in entries:
            twin = await self.find_duplicate(scope, entry.layer, entry.digest, entry.created_at) if if_new else None
            await asyncio.sleep(0)
            if twin is None:
                await self.store(scope, entry)
            found.append(twin)
        return found


class HalfABatchWhenCancelled(Mutant):
    caught_by = "test_a_call_that_is_cancelled_is_done_whole_or_not_at_all"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        found = []
        for start in range(0, len(entries), 20):
            found += await super().store_many(scope, entries[start : start + 20], if_new=if_new)
            await asyncio.sleep(0)
        return found


class StuckWhenCancelled(Mutant):
    caught_by = "test_a_call_that_is_cancelled_is_done_whole_or_not_at_all"

    async def update(self, scope, id, updates, *, expected_revision=None):
        if self.__dict__.get("busy"):
            raise AdapterUnavailable("memory", "is busy")
        self.busy = True
        await asyncio.sleep(0)
        done = await super().update(scope, id, updates, expected_revision=expected_revision)
        self.busy = False
        return done

    async def store(self, scope, entry):
        if self.__dict__.get("busy"):
            raise AdapterUnavailable("memory", "is busy")
        await super().store(scope, entry)


class OpeningTwiceForgets(Mutant):
    caught_by = "test_opening_and_closing_twice_is_no_different"

    async def initialize(self):
        self._tenants.clear()


class ClosingTwiceFails(Mutant):
    caught_by = "test_opening_and_closing_twice_is_no_different"

    async def close(self):
        if self.__dict__.get("closed"):
            raise AdapterUnavailable("memory", "is closed")
        self.closed = True

    async def initialize(self):
        self.closed = False


class ClosesForGood(Mutant):
    caught_by = "test_a_closed_adapter_opens_again"

    async def close(self):
        self.closed = True

    async def store(self, scope, entry):
        if self.__dict__.get("closed"):
            raise AdapterUnavailable("memory", "is closed")
        await super().store(scope, entry)


class SaysItKeepsAndForgets(Mutant):
    caught_by = "test_what_was_acknowledged_is_there_after_opening_again"
    capabilities = InMemoryAdapter.capabilities | {Capability.PERSISTENCE}

    async def close(self):
        self._tenants.clear()


class CountsAnewAfterOpening(Mutant):
    caught_by = "test_what_was_acknowledged_is_there_after_opening_again"
    capabilities = InMemoryAdapter.capabilities | {Capability.PERSISTENCE}

    async def close(self):
        for tenant in self._tenants.values():
            for row in tenant.rows.values():
                row.entry.access_count = 0


class BoundToItsFirstLoop(Mutant):
    caught_by = "test_another_event_loop_may_use_it_too test_event_loops_may_use_it_side_by_side"

    async def store(self, scope, entry):
        loop = self.__dict__.setdefault("loop", asyncio.get_running_loop())
        if loop is not asyncio.get_running_loop():
            raise AdapterUnavailable("memory", "is bound to another event loop")
        await super().store(scope, entry)
