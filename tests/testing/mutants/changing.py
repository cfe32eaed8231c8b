"""Bugs in replacing, updating, counting, deleting, in duplicates and in batches."""

import unicodedata
from dataclasses import replace

from lamina.domain.filters import MemoryFilter
from lamina.domain.scope import Scope
from lamina.domain.text import content_digest
from lamina.errors import Conflict, InvalidInput, NotFound
from lamina.ports.memory_adapter import ACCESS_FIELDS, MemoryAdapter, Update
from mutants.base import Mutant, Spoils

REPLACED = "test_storing_again_replaces_the_whole_memory_in_its_place"


class Changes(Mutant):
    """Makes other changes than those asked for."""

    def changes(self, entry, changes):
        raise NotImplementedError

    def _update(self, scope, update):
        row = self._row(scope, update.id)
        changes = update.changes if row is None else self.changes(row.entry, dict(update.changes))
        return super()._update(scope, Update(update.id, changes, update.expected_revision))


class MergesOnReplacement(Mutant):
    caught_by = REPLACED

    def _store(self, scope, entry):
        old = self._row(scope, entry.id)
        tags = [] if old is None else old.entry.tags
        super()._store(scope, entry.replace(tags=[*tags, *entry.tags]))


class MovesReplacementsToTheEnd(Mutant):
    caught_by = f"{REPLACED} test_pages_after_a_seq_tile_while_rows_come_and_go"

    def _store(self, scope, entry):
        old = self._row(scope, entry.id)
        if old is not None:
            self._tenant(scope).remove(entry.id)
            entry = entry.replace(revision=old.entry.revision + 1)
        super()._store(scope, entry)


class ReplacementsStartAnew(Spoils):
    caught_by = f"{REPLACED} test_a_new_memory_keeps_a_greater_revision test_a_batch_replaces_too"

    def spoil(self, entry):
        return entry

    def _store(self, scope, entry):
        super()._store(scope, entry)
        self._row(scope, entry.id).entry.revision = 1


class TakesTheSeqItIsGiven(Mutant):
    caught_by = "test_order_and_revision_are_the_adapters_to_give"

    def _store(self, scope, entry):
        super()._store(scope, entry)
        self._row(scope, entry.id).entry.seq = entry.seq or self._seq


class StartsEveryRevisionAtOne(Mutant):
    caught_by = "test_a_new_memory_keeps_a_greater_revision"

    def _store(self, scope, entry):
        super()._store(scope, entry.replace(revision=1))


class GivesTheLastSeqAgain(Mutant):
    caught_by = "test_a_seq_is_never_given_twice"

    def _store(self, scope, entry):
        self._seq = max((row.entry.seq for each in self._tenants.values() for row in each.rows.values()), default=0)
        super()._store(scope, entry)


class KeepsTombstones(Mutant):
    caught_by = "test_an_id_that_comes_back_is_a_new_memory"

    def _delete(self, scope, id):
        row = self._row(scope, id)
        self.__dict__.setdefault("graves", {})[id] = row and row.entry.revision
        return super()._delete(scope, id)

    def _store(self, scope, entry):
        revision = self.__dict__.get("graves", {}).get(entry.id) or 0
        super()._store(scope, entry.replace(revision=max(revision + 1, entry.revision)))


class DoesNotUpdateTheTrust(Changes):
    caught_by = "test_each_field_changes_alone test_all_fields_change_together"

    def changes(self, entry, changes):
        return {**changes, "trust": entry.trust}


class UpdatesDropTheExpiry(Changes):
    caught_by = "test_each_field_changes_alone"

    def changes(self, entry, changes):
        return changes if changes.keys() <= ACCESS_FIELDS else {"expires_at": None, **changes}


class UpdatesSetTheTime(Changes):
    caught_by = "test_each_field_changes_alone"

    def changes(self, entry, changes):
        return {"updated_at": entry.updated_at.replace(microsecond=1), **changes}


class CountsVectorsAsChanges(Mutant):
    caught_by = "test_making_and_dropping_a_vector_leaves_the_revision"

    def _update(self, scope, update):
        done = super()._update(scope, update)
        row = self._row(scope, update.id)
        if done and row is not None and update.changes.keys() == {"embedding"}:
            row.entry.revision += 1
        return done


class NoneMeansUnchanged(Changes):
    caught_by = "test_fields_can_be_emptied"

    def changes(self, entry, changes):
        return {field: getattr(entry, field) if value is None else value for field, value in changes.items()}


class CachesWhatItReads(Mutant):
    caught_by = "test_a_change_shows_in_every_read"

    async def search_by_text(self, query, options):
        return self._stale(await super().search_by_text(query, options))

    def _stale(self, hits):
        for hit in hits:
            hit.entry.confidence = 1.0
        return hits


class UpdatesAnyField(Mutant):
    caught_by = "test_other_fields_do_not_change"

    def _update(self, scope, update):
        old = self._row(scope, update.id)
        if old is None or update.changes.keys() <= ACCESS_FIELDS:
            return super()._update(scope, update)
        self._write(old, old.entry.replace(**update.changes))
        return True


class PassesOverUnknownFields(Changes):
    caught_by = "test_other_fields_do_not_change"

    def changes(self, entry, changes):
        return {field: value for field, value in changes.items() if field != "colour"}


class UpdatesOfNothingCount(Mutant):
    caught_by = "test_an_update_of_nothing_is_refused"

    def _update(self, scope, update):
        return super()._update(scope, update) if update.changes else True


class MissingIdsRaise(Mutant):
    caught_by = "test_a_memory_that_is_not_there_does_not_change test_reads_are_counted_id_by_id"

    async def update(self, scope, id, updates, *, expected_revision=None):
        if await super().update(scope, id, updates, expected_revision=expected_revision):
            return True
        raise NotFound(id)

    async def touch(self, scope, ids, now):
        if not all(self._row(scope, id) for id in ids):
            raise NotFound(ids[0])
        await super().touch(scope, ids, now)


class RevisionsSkip(Mutant):
    caught_by = "test_each_update_counts_the_revision_up"

    def _write(self, old, entry, *, is_history=True):
        super()._write(old, entry.replace(revision=1 if old is None else old.entry.revision + 2))


class CountingReadsIsAChange(Changes):
    caught_by = "test_counting_reads_leaves_the_revision_alone test_reads_are_counted_id_by_id"

    def changes(self, entry, changes):
        return {"confidence": entry.confidence, **changes}


class ExpectsNothing(Mutant):
    caught_by = "test_an_expected_revision_that_is_not_the_present_one_is_a_conflict test_updates_answer_in_order"

    def _update(self, scope, update):
        return super()._update(scope, Update(update.id, update.changes))


class ChangesBeforeItConflicts(Mutant):
    caught_by = "test_an_expected_revision_that_is_not_the_present_one_is_a_conflict"

    async def update(self, scope, id, updates, *, expected_revision=None):
        before = await self.get(scope, id)
        done = await super().update(scope, id, updates)
        if before is not None and expected_revision not in {None, before.revision}:
            raise Conflict(id, "changed meanwhile")
        return done


class CountsAnIdOnce(Mutant):
    caught_by = "test_reads_are_counted_id_by_id test_every_read_is_counted"

    async def touch(self, scope, ids, now):
        await super().touch(scope, sorted(set(ids)), now)


class HidesInsteadOfDeleting(Mutant):
    caught_by = "test_a_deleted_memory_is_nowhere"

    def _delete(self, scope, id):
        row = self._row(scope, id)
        if row is None or row.entry.is_expired(row.entry.created_at):
            return False
        return self._update(scope, Update(id, {"expires_at": row.entry.created_at}))


class DeletesTheTwinsToo(Mutant):
    caught_by = "test_a_deleted_memory_is_nowhere test_the_oldest_twin_is_found_whole"

    def _delete(self, scope, id):
        row = self._row(scope, id)
        twins = [] if row is None else list(self._tenant(scope).same[row.digest])
        return [super(DeletesTheTwinsToo, self)._delete(scope, twin) for twin in twins] != []


class ComparesRawText(Mutant):
    caught_by = "test_what_is_the_same_is_one_rule"

    def _duplicate(self, scope, layer, digest, now):
        found = super()._duplicate(scope, layer, digest, now)
        normal = found and unicodedata.normalize("NFC", found.content)
        return found if found and normal == found.content == " ".join(found.content.split()) else None


class ComparesWithoutCase(Mutant):
    caught_by = "test_what_is_the_same_is_one_rule"

    def _duplicate(self, scope, layer, digest, now):
        rows = self._admitted(scope, MemoryFilter(now=now, layers=frozenset({layer})))
        return next(
            (row.entry for row in rows if digest in (row.digest, content_digest(row.entry.content.lower()))), None
        )


class TheNewestTwin(Mutant):
    caught_by = "test_the_oldest_twin_is_found_whole"

    def _duplicate(self, scope, layer, digest, now):
        rows = list(self._admitted(scope, MemoryFilter(now=now, layers=frozenset({layer}))))
        return next((row.entry.replace() for row in reversed(rows) if row.digest == digest), None)


class TwinsWithoutVectors(Mutant):
    caught_by = "test_the_oldest_twin_is_found_whole test_only_what_is_new_is_stored"

    def _duplicate(self, scope, layer, digest, now):
        found = super()._duplicate(scope, layer, digest, now)
        return found and found.replace(embedding=None)


class ExpiredTwinsCount(Mutant):
    caught_by = "test_an_expired_twin_is_absent test_a_twin_that_is_expired_by_then_does_not_count"

    def _duplicate(self, scope, layer, digest, now):
        return super()._duplicate(scope, layer, digest, now.replace(year=2000))


class TwinsOfAnyLayer(Mutant):
    caught_by = "test_a_twin_is_looked_for_in_its_layer test_another_layer_is_another_saying"

    def _duplicate(self, scope, layer, digest, now):
        rows = self._admitted(scope, MemoryFilter(now=now))
        return next((row.entry.replace() for row in rows if row.digest == digest), None)


class DigestsOfTheFirstContent(Mutant):
    caught_by = "test_a_twin_is_what_it_says_now"

    def _duplicate(self, scope, layer, digest, now):
        rows = self._admitted(scope, MemoryFilter(now=now, layers=frozenset({layer})))
        return next((row.entry for row in rows if digest == (row.past[0].digest if row.past else row.digest)), None)


class LooksAtAThousandForTwins(Mutant):
    caught_by = "test_a_twin_far_down_is_found"

    def _duplicate(self, scope, layer, digest, now):
        found = super()._duplicate(scope, layer, digest, now)
        return found if found and found.seq <= 1_000 else None


class StoresBatchesBackwards(Mutant):
    caught_by = "test_a_batch_is_stored_in_its_order test_insertion_order_is_kept_whatever_the_clock_does"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        return (await super().store_many(scope, entries[::-1], if_new=if_new))[::-1]


class BatchesDoNotReplace(Mutant):
    caught_by = "test_a_batch_replaces_too"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        new = [entry for entry in entries if self._row(scope, entry.id) is None]
        return await super().store_many(scope, new, if_new=if_new)


class StoresOldAndNew(Mutant):
    caught_by = "test_only_what_is_new_is_stored test_of_many_who_say_the_same_one_is_stored"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        return await super().store_many(scope, entries)


class StoresOnlyWhatIsNew(Mutant):
    caught_by = "test_without_being_asked_twins_are_stored"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        return await super().store_many(scope, entries, if_new=True)


class MissesTwinsInTheBatch(Mutant):
    caught_by = "test_only_what_is_new_is_stored"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        twins = [await self.find_duplicate(scope, e.layer, e.digest, e.created_at) if if_new else None for e in entries]
        await super().store_many(scope, [entry for entry, twin in zip(entries, twins, strict=True) if twin is None])
        return twins


class TheResultsOfABatchAreSorted(Mutant):
    caught_by = "test_updates_answer_in_order test_deletions_answer_in_order"

    async def update_many(self, scope, updates, *, expected_meta=None):
        return sorted(await super().update_many(scope, updates, expected_meta=expected_meta))

    async def delete_many(self, scope, ids, *, filter=None):
        return sorted(await super().delete_many(scope, ids, filter=filter))


class AConflictEndsTheBatch(Mutant):
    caught_by = "test_updates_answer_in_order"

    async def update_many(self, scope, updates, *, expected_meta=None):
        return [await self.update(scope, e.id, e.changes, expected_revision=e.expected_revision) for e in updates]


class WritesBatchesOneByOne(Mutant):
    caught_by = "test_a_batch_with_a_bad_entry_is_not_written_at_all test_a_batch_with_a_bad_update_changes_nothing"
    store_many = MemoryAdapter.store_many
    update_many = MemoryAdapter.update_many


class CommitsEveryThousand(Mutant):
    caught_by = "test_a_large_batch_is_one_batch"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        found = []
        for start in range(0, len(entries), 1_000):
            found += await super().store_many(scope, entries[start : start + 1_000], if_new=if_new)
        return found


class RollsBackWithoutItsHistory(Mutant):
    caught_by = "test_a_batch_with_a_bad_update_changes_nothing"

    async def update_many(self, scope, updates, *, expected_meta=None):
        try:
            return await super().update_many(scope, updates, expected_meta=expected_meta)
        except InvalidInput:
            row = self._row(scope, updates[0].id)
            self._tenant(scope).put(replace(row, past=(row.entry,)))
            raise


class DeletesInTheWholeTenant(Mutant):
    caught_by = "test_a_stranger_does_not_change_a_memory"

    async def delete_many(self, scope, ids, *, filter=None):
        return await super().delete_many(Scope(scope.tenant), ids, filter=filter)
