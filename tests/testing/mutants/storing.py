"""Bugs in what is kept, what comes back, and what is refused."""

import json
import unicodedata
from array import array
from datetime import timedelta, timezone

from lamina.domain.text import check_name, clean
from lamina.domain.validation import check_entry
from lamina.errors import InvalidInput, LaminaError
from lamina.ports.memory_adapter import check_in_scope, check_updates
from mutants.base import Misreads, Mutant, Spoils


class RoundsTimesToMilliseconds(Spoils):
    caught_by = "test_every_field_comes_back test_each_field_changes_alone test_all_fields_change_together"

    def spoil(self, entry):
        whole = entry.updated_at.microsecond // 1000 * 1000
        return entry.replace(updated_at=entry.updated_at.replace(microsecond=whole))


class StoresNothingAsEmptyText(Spoils):
    caught_by = "test_the_defaults_come_back test_fields_can_be_emptied"

    def spoil(self, entry):
        return entry.replace(source=entry.source or "")


class ReturnsPlainTextForKinds(Mutant):
    caught_by = "test_kinds_are_the_domains_own"

    async def get(self, scope, id):
        entry = await super().get(scope, id)
        return entry and entry.replace(layer=str(entry.layer.value))


class ListsVectorsUnasked(Mutant):
    caught_by = "test_a_list_has_every_field_and_the_vector_only_if_asked"

    async def list(self, options):
        return [row.entry.replace() for row in self._admitted(options.scope, options.filter)]


class FindsWithoutMetadata(Mutant):
    caught_by = (
        "test_a_vector_search_has_every_field_and_the_vector_only_if_asked "
        "test_a_text_search_has_every_field_and_the_vector_only_if_asked"
    )

    async def search_by_vector(self, embedding, options):
        return self._poorer(await super().search_by_vector(embedding, options))

    async def search_by_text(self, query, options):
        return self._poorer(await super().search_by_text(query, options))

    def _poorer(self, hits):
        for hit in hits:
            hit.entry.metadata = {}
        return hits


class ReturnsLocalTimes(Mutant):
    caught_by = "test_times_come_back_in_utc"

    async def get(self, scope, id):
        entry = await super().get(scope, id)
        return entry and entry.replace(created_at=entry.created_at.astimezone(timezone(timedelta(hours=2))))


class ComposesText(Spoils):
    caught_by = "test_text_comes_back_code_point_by_code_point"

    def spoil(self, entry):
        return entry.replace(content=unicodedata.normalize("NFC", entry.content))


class TrimsText(Spoils):
    caught_by = "test_text_comes_back_code_point_by_code_point test_what_is_the_same_is_one_rule"

    def spoil(self, entry):
        return entry.replace(content=entry.content.strip())


class TrimsIds(Spoils):
    caught_by = "test_an_id_is_what_it_is_code_point_by_code_point"

    def spoil(self, entry):
        return entry.replace(id=entry.id.strip())


class LooksIdsUpByPrefix(Mutant):
    caught_by = "test_an_id_is_what_it_is_code_point_by_code_point"

    async def delete_many(self, scope, ids, *, filter=None):
        return [await self.delete(scope, id) for id in ids]

    async def delete(self, scope, id, *, expected_revision=None):
        found = [other for other in self._tenant(scope).rows if other.startswith(id)]
        return any([await super(LooksIdsUpByPrefix, self).delete(scope, other) for other in found])


class DeletesWhateverTheRevision(Mutant):
    caught_by = "test_a_memory_of_another_revision_is_not_deleted"

    async def delete(self, scope, id, *, expected_revision=None):
        return await super().delete(scope, id)


class BoolsBecomeNumbers(Spoils):
    caught_by = "test_metadata_comes_back_with_its_types test_every_field_comes_back"

    def spoil(self, entry):
        return entry.replace(metadata=_each(entry.metadata, lambda value: int(value) if value is True else value))


class WholeNumbersBecomeFloats(Spoils):
    caught_by = "test_metadata_comes_back_with_its_types"

    def spoil(self, entry):
        return entry.replace(metadata=json.loads(json.dumps(entry.metadata), parse_int=float))


class ReadsTypeTags(Spoils):
    caught_by = "test_metadata_comes_back_with_its_types"

    def spoil(self, entry):
        return entry.replace(metadata=json.loads(json.dumps(entry.metadata), object_hook=self._hook))

    @staticmethod
    def _hook(value):
        return value["value"] if value.keys() == {"__type__", "value"} else value


class DropsEmptyValues(Spoils):
    caught_by = "test_metadata_comes_back_with_its_types"

    def spoil(self, entry):
        return entry.replace(metadata=json.loads(json.dumps(entry.metadata), object_hook=self._hook))

    @staticmethod
    def _hook(value):
        return {key: each for key, each in value.items() if each not in ({}, [], None)}


class FlattensDeepMetadata(Spoils):
    caught_by = "test_metadata_of_the_greatest_depth_comes_back"

    def spoil(self, entry):
        return entry.replace(metadata=_each(entry.metadata, lambda value: value, depth=20))


class KeepsTagsAsASet(Spoils):
    caught_by = "test_the_greatest_number_of_tags_comes_back_in_order test_every_field_comes_back"

    def spoil(self, entry):
        return entry.replace(tags=sorted(set(entry.tags)))


class CutsLongContent(Spoils):
    caught_by = "test_the_longest_content_comes_back test_a_megabyte_of_words_is_found_by_its_last"

    def spoil(self, entry):
        return entry.replace(content=entry.content[:1_000_000])


class CutsLongMetadata(Spoils):
    caught_by = "test_long_metadata_comes_back"

    def spoil(self, entry):
        def cut(value):
            return value[:65_535] if isinstance(value, str) else value

        return entry.replace(metadata=_each(entry.metadata, cut))


class KeepsTheCallersLists(Mutant):
    caught_by = "test_what_is_stored_is_a_copy"

    def _store(self, scope, entry):
        super()._store(scope, entry)
        self._row(scope, entry.id).entry.tags = entry.tags


class NumbersTheCallersEntry(Mutant):
    caught_by = "test_what_is_stored_is_a_copy"

    def _store(self, scope, entry):
        super()._store(scope, entry)
        entry.seq = self._seq


class KeepsTheListsOfAnUpdate(Mutant):
    caught_by = "test_what_an_update_brings_is_a_copy"

    def _update(self, scope, update):
        done = super()._update(scope, update)
        if done and "metadata" in update.changes:
            self._row(scope, update.id).entry.metadata = update.changes["metadata"]
        return done


class ReturnsItsOwnEntries(Mutant):
    caught_by = "test_what_is_returned_is_a_copy"

    async def get(self, scope, id):
        row = self._row(scope, id)
        return row and row.entry


class FindsItsOwnEntries(Mutant):
    caught_by = "test_what_is_returned_is_a_copy"

    async def search_by_text(self, query, options):
        hits = await super().search_by_text(query, options)
        for hit in hits:
            hit.entry = self._row(options.scope, hit.entry.id).entry
        return hits


class WantsFloats(Spoils):
    caught_by = "test_numbers_come_back_whatever_kind_they_were_given_as"

    def spoil(self, entry):
        if not isinstance(entry.relevance, float):
            raise InvalidInput("relevance", "is no float", "Give a float.")
        return entry


class KeepsVectorsAsBytes(Spoils):
    caught_by = "test_every_field_comes_back"

    def spoil(self, entry):
        vector = entry.embedding
        return entry.replace(embedding=vector and array("f", [min(255, int(abs(each))) for each in vector]))


class ChecksNothing(Mutant):
    caught_by = (
        "test_unclean_text_is_refused_by_name test_odd_metadata_is_refused_by_name "
        "test_odd_fields_are_refused_by_name test_metadata_that_is_too_deep_or_holds_itself_is_refused"
    )

    def _store(self, scope, entry):
        check_in_scope(scope, entry)
        self._seq += 1
        self._write(self._tenant(scope).rows.get(entry.id), entry.replace(seq=self._seq, revision=1))


class CleansNames(Mutant):
    caught_by = "test_unclean_text_is_refused_by_name test_an_unclean_tenant_is_refused"

    def _store(self, scope, entry):
        super()._store(scope, entry.replace(id=clean(entry.id), owner=clean(entry.owner), tenant=scope.tenant))


class WritesBeforeItChecks(Mutant):
    caught_by = "test_odd_fields_are_refused_by_name test_unclean_text_is_refused_by_name"

    async def store(self, scope, entry):
        try:
            await super().store(scope, entry)
        except LaminaError:
            await super().store(
                scope, entry.__class__("half", "half", entry.created_at, entry.created_at, tenant="acme")
            )
            raise


class UpdatesUnchecked(Mutant):
    caught_by = "test_an_update_refuses_what_a_store_would test_a_batch_with_a_bad_update_changes_nothing"

    def _update(self, scope, update):
        check_updates(update.changes)
        old = self._row(scope, update.id)
        if old is None:
            return False
        self._write(old, old.entry.replace(**update.changes, revision=old.entry.revision + 1))
        return True


class UpdatesBeforeItChecks(Mutant):
    caught_by = "test_an_update_refuses_what_a_store_would"

    async def update(self, scope, id, updates, *, expected_revision=None):
        for field, value in updates.items():
            if not await super().update(scope, id, {field: value}, expected_revision=expected_revision):
                return False
        return True


class RefusesStrangeIds(Mutant):
    caught_by = "test_an_id_that_cannot_be_is_not_found"

    async def get(self, scope, id):
        return await super().get(scope, check_name("id", id))


class MetaIsCleaned(Mutant):
    caught_by = "test_meta_is_refused_if_it_could_not_be_kept"

    async def save_meta(self, scope, key, value, now, **expected):
        await super().save_meta(scope, key, clean(value), now, **expected)


class ChecksOnlyTheFirstOfABatch(Misreads):
    caught_by = "test_a_batch_with_a_bad_entry_is_not_written_at_all test_a_large_batch_is_one_batch"

    def admits(self, scope, filter, entry):
        return filter.admits(scope, entry)

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        if entries:
            check_entry(entries[0])
        found = []
        for entry in entries:
            found += await super().store_many(scope, [entry], if_new=if_new)
        return found


def _each(value, change, depth=40):
    if isinstance(value, dict):
        return {key: _each(each, change, depth - 1) for key, each in value.items()} if depth else {}
    if isinstance(value, list):
        return [_each(each, change, depth - 1) for each in value]
    return change(value)
