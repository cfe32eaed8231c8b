"""Bugs in batches."""

from dataclasses import replace

from lamina.domain.scope import Scope
from lamina.errors import InvalidInput
from lamina.ports.memory_adapter import MemoryAdapter
from mutants.base import Mutant


class StoresBatchesBackwards(Mutant):
    caught_by = "test_a_batch_is_stored_in_its_order test_insertion_order_is_kept_whatever_the_clock_does"

    async def store_many(self, scope, entries, *, if_new=False):
        return (await super().store_many(scope, entries[::-1], if_new=if_new))[::-1]


class BatchesDoNotReplace(Mutant):
    caught_by = "test_a_batch_replaces_too"

    async def store_many(self, scope, entries, *, if_new=False):
        new = [entry for entry in entries if self._row(scope, entry.id) is None]
        return await super().store_many(scope, new, if_new=if_new)


class StoresOldAndNew(Mutant):
    caught_by = "test_only_what_is_new_is_stored test_of_many_who_say_the_same_one_is_stored"

    async def store_many(self, scope, entries, *, if_new=False):
        return await super().store_many(scope, entries)


class StoresOnlyWhatIsNew(Mutant):
    caught_by = "test_without_being_asked_twins_are_stored"

    async def store_many(self, scope, entries, *, if_new=False):
        return await super().store_many(scope, entries, if_new=True)


class StoresUnderATakenId(Mutant):
    caught_by = "test_an_id_that_is_taken_is_not_new"

    def _twin(self, scope, entry):
        own = Scope(entry.tenant, entry.owner, entry.namespace)
        return self._duplicate(own, entry.layer, entry.digest, entry.created_at)


class MissesTwinsInTheBatch(Mutant):
    caught_by = "test_only_what_is_new_is_stored"

    async def store_many(self, scope, entries, *, if_new=False):
        twins = [await self.find_duplicate(scope, e.layer, e.digest, e.created_at) if if_new else None for e in entries]
        await super().store_many(scope, [entry for entry, twin in zip(entries, twins, strict=True) if twin is None])
        return twins


class TheResultsOfABatchAreSorted(Mutant):
    caught_by = "test_updates_answer_in_order test_deletions_answer_in_order"

    async def update_many(self, scope, updates):
        return sorted(await super().update_many(scope, updates))

    async def delete_many(self, scope, ids):
        return sorted(await super().delete_many(scope, ids))


class AConflictEndsTheBatch(Mutant):
    caught_by = "test_updates_answer_in_order"

    async def update_many(self, scope, updates):
        return [await self.update(scope, e.id, e.changes, expected_revision=e.expected_revision) for e in updates]


class WritesBatchesOneByOne(Mutant):
    caught_by = "test_a_batch_with_a_bad_entry_is_not_written_at_all test_a_batch_with_a_bad_update_changes_nothing"
    store_many = MemoryAdapter.store_many
    update_many = MemoryAdapter.update_many


class CommitsEveryThousand(Mutant):
    caught_by = "test_a_large_batch_is_one_batch"

    async def store_many(self, scope, entries, *, if_new=False):
        found = []
        for start in range(0, len(entries), 1_000):
            found += await super().store_many(scope, entries[start : start + 1_000], if_new=if_new)
        return found


class RollsBackWithoutItsHistory(Mutant):
    caught_by = "test_a_batch_with_a_bad_update_changes_nothing"

    async def update_many(self, scope, updates):
        try:
            return await super().update_many(scope, updates)
        except InvalidInput:
            row = self._row(scope, updates[0].id)
            self._tenant(scope).put(replace(row, past=(row.entry,)))
            raise


class DeletesInTheWholeTenant(Mutant):
    caught_by = "test_a_stranger_does_not_change_a_memory"

    async def delete_many(self, scope, ids):
        return await super().delete_many(Scope(scope.tenant), ids)
