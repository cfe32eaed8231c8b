"""Bugs that let a call reach outside its scope."""

import unicodedata

from lamina.domain.memory import SHARED_LAYERS, MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.validation import check_entry
from mutants.base import Misreads, Mutant

ALIKE = "test_names_that_look_alike_are_different_names"


class FoldsNames(Mutant):
    """Names that fold to the same are the same."""

    def fold(self, name):
        raise NotImplementedError

    def _folded(self, scope):
        return Scope(
            self.fold(scope.tenant),
            scope.owner and self.fold(scope.owner),
            scope.namespace and self.fold(scope.namespace),
            scope.include_shared,
        )

    def _write(self, old, entry, *, is_history=True):
        names = {name: self.fold(getattr(entry, name)) for name in ("tenant", "owner", "namespace")}
        super()._write(old, entry.replace(**names))

    def _row(self, scope, id):
        return super()._row(self._folded(scope), id)

    def _admitted(self, scope, filter, *, after=0):
        return super()._admitted(self._folded(scope), filter, after=after)

    def _tenant(self, scope):
        return super()._tenant(self._folded(scope))


class NamesIgnoreCase(FoldsNames):
    caught_by = f"{ALIKE} test_an_id_is_looked_up_under_exactly_its_names"

    def fold(self, name):
        return name.casefold()


class NamesAreNormalised(FoldsNames):
    caught_by = f"{ALIKE} test_an_id_is_looked_up_under_exactly_its_names"

    def fold(self, name):
        return unicodedata.normalize("NFC", name)


class NamesAreTrimmed(FoldsNames):
    caught_by = f"{ALIKE} test_an_id_is_looked_up_under_exactly_its_names"

    def fold(self, name):
        return name.strip()


class NamesAreCut(FoldsNames):
    caught_by = f"{ALIKE} test_an_id_is_looked_up_under_exactly_its_names"

    def fold(self, name):
        return name[:255]


class NamesArePrefixes(Misreads):
    caught_by = ALIKE

    def admits(self, scope, filter, entry):
        if not filter.matches(entry) or not entry.owner.startswith(scope.owner or ""):
            return False
        return entry.namespace.startswith(scope.namespace or "")


class OneTableOfIds(Mutant):
    caught_by = "test_tenants_use_the_same_id_for_memories_of_their_own"

    def _store(self, scope, entry):
        for tenant in self._tenants.values():
            if entry.id in tenant.rows:
                tenant.remove(entry.id)
        super()._store(scope, entry)


class OpenMeansDefault(Misreads):
    caught_by = "test_what_a_scope_leaves_open_is_any"

    def admits(self, scope, filter, entry):
        return filter.admits(Scope(scope.tenant, scope.owner or "default", scope.namespace), entry)


class AlwaysShares(Misreads):
    caught_by = "test_shared_layers_pass_whoever_owns_them_and_only_if_asked"

    def admits(self, scope, filter, entry):
        return filter.admits(Scope(scope.tenant, scope.owner, scope.namespace, include_shared=True), entry)


class NeverShares(Misreads):
    caught_by = "test_shared_layers_pass_whoever_owns_them_and_only_if_asked"

    def admits(self, scope, filter, entry):
        return filter.admits(Scope(scope.tenant, scope.owner, scope.namespace), entry)


class SharesAcrossNamespaces(Misreads):
    caught_by = "test_shared_layers_pass_whoever_owns_them_and_only_if_asked"

    def admits(self, scope, filter, entry):
        shared = scope.include_shared and entry.layer in SHARED_LAYERS
        return filter.matches(entry) and (shared or scope.admits(entry))


class SharesById(Mutant):
    caught_by = "test_an_id_in_a_shared_layer_is_reached_only_if_asked"

    def _row(self, scope, id):
        return super()._row(Scope(scope.tenant, scope.owner, scope.namespace, include_shared=True), id)


class GetsByIdAlone(Mutant):
    caught_by = "test_a_stranger_does_not_learn_of_a_memory test_an_id_is_looked_up_under_exactly_its_names"

    async def get(self, scope, id):
        return next((row.entry for each in self._tenants.values() if (row := each.rows.get(id))), None)


class CountsOtherOwners(Mutant):
    caught_by = f"test_a_stranger_does_not_learn_of_a_memory {ALIKE}"

    async def count(self, scope, filter):
        return await super().count(Scope(scope.tenant), filter)


class FindsTwinsOfOthers(Mutant):
    caught_by = (
        "test_a_stranger_does_not_learn_of_a_memory "
        "test_a_twin_is_one_of_the_same_owner_namespace_and_layer "
        "test_a_stranger_does_not_learn_of_a_memory"
    )

    def _duplicate(self, scope, layer, digest, now):
        return super()._duplicate(Scope(scope.tenant), layer, digest, now)


class UpdatesOthers(Mutant):
    caught_by = "test_a_stranger_does_not_change_a_memory"

    def _update(self, scope, update):
        return super()._update(Scope(scope.tenant), update)


class DeletesForOthers(Mutant):
    caught_by = "test_a_stranger_does_not_change_a_memory"

    def _delete(self, scope, id):
        return super()._delete(Scope(scope.tenant), id)


class CountsReadsForOthers(Mutant):
    caught_by = "test_a_stranger_does_not_change_a_memory"

    async def touch(self, scope, ids, now):
        await super().touch(Scope(scope.tenant), ids, now)


class DropsAllEmbeddings(Mutant):
    caught_by = "test_a_stranger_does_not_change_a_memory test_embeddings_are_dropped_in_the_scope_only"

    async def drop_embeddings(self, scope):
        return await super().drop_embeddings(Scope(scope.tenant))


class TellsTheHistoryToOthers(Mutant):
    caught_by = "test_a_stranger_does_not_learn_what_a_memory_was"

    async def history(self, scope, id):
        return await super().history(Scope(scope.tenant), id)


class SearchesVectorsOfOthers(Mutant):
    caught_by = f"{ALIKE} test_scope_and_filter_hold_before_vectors_are_ranked"

    async def search_by_vector(self, embedding, options):
        return await super().search_by_vector(embedding, _widened(options))


class SearchesTextsOfOthers(Mutant):
    caught_by = f"{ALIKE} test_scope_and_filter_hold_before_texts_are_ranked"

    async def search_by_text(self, query, options):
        return await super().search_by_text(query, _widened(options))


class StoresOutsideTheScope(Mutant):
    caught_by = "test_nobody_stores_outside_the_scope"

    def _store(self, scope, entry):
        check_entry(entry)
        super()._store(Scope(entry.tenant), entry)

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        if any(entry.tenant != scope.tenant for entry in entries):
            return await super().store_many(scope, entries, if_new=if_new)
        return await super().store_many(Scope(scope.tenant), entries, if_new=if_new)


class LooksForTwinsBeforeItChecksTheScope(Mutant):
    caught_by = "test_nobody_stores_outside_the_scope"

    async def store_many(self, scope, entries, *, if_new=False, expected_meta=None):
        for entry in entries if if_new else ():
            own = Scope(entry.tenant, entry.owner, entry.namespace)
            if twin := await self.find_duplicate(own, entry.layer, entry.digest, entry.created_at):
                return [twin]
        return await super().store_many(scope, entries, if_new=if_new)


class ReplacesOutsideTheScope(Mutant):
    caught_by = "test_nobody_replaces_a_memory_outside_the_scope"

    def _store(self, scope, entry):
        old = self._tenant(scope).rows.get(entry.id)
        if old is not None and not scope.admits(old.entry):
            self._tenant(scope).remove(entry.id)
        super()._store(scope, entry)


class MovesMemoriesOutOfTheScope(Mutant):
    caught_by = "test_nobody_moves_a_memory_out_of_the_scope"

    def _update(self, scope, update):
        within = scope if self._row(scope, update.id) is None else Scope(scope.tenant)
        return super()._update(within, update)


class MetaForAllTenants(Mutant):
    caught_by = "test_what_is_kept_about_a_tenant_is_the_tenants"

    async def save_meta(self, scope, key, value, now, **expected):
        await super().save_meta(Scope("all"), key, value, now, **expected)

    async def load_meta(self, scope, key):
        return await super().load_meta(Scope("all"), key)


class MetaUnderOneKey(Mutant):
    caught_by = "test_what_is_kept_about_a_tenant_is_the_tenants"

    async def save_meta(self, scope, key, value, now, **expected):
        await super().save_meta(scope, "meta", value, now, **expected)

    async def load_meta(self, scope, key):
        return await super().load_meta(scope, "meta")


class MetaIsAMemory(Mutant):
    caught_by = "test_what_is_kept_about_a_tenant_is_no_memory"

    async def save_meta(self, scope, key, value, now, **expected):
        entry = MemoryEntry(id=key, content=value, created_at=now, updated_at=now, tenant=scope.tenant)
        await self.store(Scope(scope.tenant), entry)

    async def load_meta(self, scope, key):
        entry = await self.get(Scope(scope.tenant), key)
        return entry and entry.content


class MetaOfTheOwner(Mutant):
    caught_by = "test_what_is_kept_about_a_tenant_is_no_memory"

    async def save_meta(self, scope, key, value, now, **expected):
        await super().save_meta(scope, f"{scope.owner} {key}", value, now, **expected)

    async def load_meta(self, scope, key):
        return await super().load_meta(scope, f"{scope.owner} {key}")


def _widened(options):
    return type(options)(
        scope=Scope(options.scope.tenant),
        filter=options.filter,
        limit=options.limit,
        include_embeddings=options.include_embeddings,
    )
