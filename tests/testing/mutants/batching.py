"""Bugs in how a batch, or who asks for a twin, looks for what is there already."""

from dataclasses import replace

from lamina.domain.scope import Scope
from mutants.base import Mutant


class StoresUnderATakenId(Mutant):
    caught_by = "test_an_id_that_is_taken_is_not_new"

    def _twin(self, scope, entry):
        own = Scope(entry.tenant, entry.owner, entry.namespace)
        return self._duplicate(own, entry.layer, entry.digest, entry.created_at)


class FindsTwinsByStoring(Mutant):
    caught_by = "test_twins_are_found_without_storing"

    async def find_twins(self, scope, entries):
        return await self.store_many(scope, entries, if_new=True)


class FindsTwinsOutsideTheScope(Mutant):
    caught_by = "test_a_twin_is_looked_for_within_the_scope_only"

    async def find_twins(self, scope, entries):
        return await super().find_twins(Scope(scope.tenant), entries)


class DeletesWhateverItIsNow(Mutant):
    caught_by = "test_only_what_passes_the_filter_is_deleted"

    async def delete_many(self, scope, ids, *, filter=None):
        return await super().delete_many(scope, ids)


class DeletesWithoutLookingAtVectors(Mutant):
    caught_by = "test_only_what_passes_the_filter_is_deleted"

    def _passes(self, scope, id, filter):
        return super()._passes(scope, id, filter and replace(filter, has_embedding=None))


class ChecksNoMeta(Mutant):
    caught_by = (
        "test_a_batch_is_written_only_beside_the_meta_that_it_expects test_meta_is_saved_only_over_what_is_expected"
    )

    def _expect_meta(self, scope, expected_meta):
        pass


class ChecksTheFirstMetaOnly(Mutant):
    caught_by = "test_a_batch_is_written_only_beside_the_meta_that_it_expects"

    def _expect_meta(self, scope, expected_meta):
        super()._expect_meta(scope, dict(list((expected_meta or {}).items())[:1]))


class EmptyBatchesExpectNothing(Mutant):
    caught_by = "test_an_empty_batch_expects_meta_too"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        return await super().store_many(scope, entries, if_new=if_new, expected_meta=expected_meta if entries else None)

    async def update_many(self, scope, updates, *, expected_meta=None):
        return await super().update_many(scope, updates, expected_meta=expected_meta if updates else None)


class TakesAnyDigest(Mutant):
    caught_by = "test_what_is_no_digest_is_refused"

    async def find_duplicate(self, scope, layer, digest, now):
        return self._duplicate(scope, layer, digest, now)


class AbsentMetaPasses(Mutant):
    caught_by = "test_meta_is_saved_only_over_what_is_expected"

    def _expect_meta(self, scope, expected_meta):
        there = {key: value for key, value in (expected_meta or {}).items() if (scope.tenant, key) in self._meta}
        super()._expect_meta(scope, there)


class LeavesUpdatesOfABatchUndone(Mutant):
    caught_by = "test_updates_go_with_a_batch"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None, updates=()):
        return await super().store_many(scope, entries, if_new=if_new, expected_meta=expected_meta)


class WritesBeforeItLooksAtUpdates(Mutant):
    caught_by = "test_what_goes_with_an_update_that_cannot_be_made_is_not_written"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None, updates=()):
        found = await super().store_many(scope, entries, if_new=if_new, expected_meta=expected_meta)
        await super().store_many(scope, [], updates=updates)
        return found
