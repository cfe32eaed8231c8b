"""Bugs in what is left of what was: expired memories, former owners, history."""

from dataclasses import replace
from datetime import timedelta

from lamina.domain.scope import Scope
from lamina.errors import Conflict
from lamina.ports.memory_adapter import HISTORY_KEPT
from mutants.base import Mutant

EXPIRED = "test_nothing_of_an_expired_memory_is_left_in_the_new_one_of_its_id"


class KeepsTheIdsOfTheExpired(Mutant):
    caught_by = EXPIRED

    def _store(self, scope, entry):
        old = self._row(scope, entry.id)
        if old is not None and old.entry.is_expired(entry.created_at):
            raise Conflict(entry.id, "is taken")
        super()._store(scope, entry)


class ReplacesTheExpired(Mutant):
    caught_by = EXPIRED

    def _store(self, scope, entry):
        old = self._row(scope, entry.id)
        if old is not None and old.entry.is_expired(entry.created_at):
            self._write(old, entry.replace(seq=old.entry.seq, revision=old.entry.revision + 1))
            return
        super()._store(scope, entry)


class NewOnesTakeThePlaceOfTheExpired(Mutant):
    caught_by = f"{EXPIRED} test_what_takes_an_expired_ones_place_in_a_batch_comes_last"

    def _store(self, scope, entry):
        old = self._row(scope, entry.id)
        super()._store(scope, entry)
        if old is not None and old.entry.is_expired(entry.created_at):
            self._row(scope, entry.id).entry.seq = old.entry.seq
            self._tenant(scope).put_in_order()


class NewOnesInheritTheHistoryOfTheExpired(Mutant):
    caught_by = "test_what_takes_an_expired_ones_place_begins_a_history_of_its_own"

    def _store(self, scope, entry):
        old = self._row(scope, entry.id)
        super()._store(scope, entry)
        if old is not None and old.entry.is_expired(entry.created_at):
            self._tenant(scope).put(replace(self._row(scope, entry.id), past=old.past))


class ReplacesNothing(Mutant):
    caught_by = "test_a_memory_that_is_not_expired_yet_is_replaced"

    def _store(self, scope, entry):
        if self._row(scope, entry.id) is not None:
            self._tenant(scope).remove(entry.id)
        super()._store(scope, entry)


class RemovesTheExpiredOfOthers(Mutant):
    caught_by = "test_an_expired_memory_of_others_keeps_its_id"

    def _store(self, scope, entry):
        old = self._row(Scope(scope.tenant), entry.id)
        if old is not None and old.entry.is_expired(entry.created_at + timedelta(microseconds=1)):
            self._tenant(scope).remove(entry.id)
        super()._store(scope, entry)


class BringsTheExpiredBackAtTheEnd(Mutant):
    caught_by = "test_a_batch_that_fails_brings_back_the_expired_in_its_place"

    def __init__(self):
        super().__init__()
        self._tenants = Unsorted()


class Unsorted(dict):
    def setdefault(self, name, tenant):
        tenant.put_in_order = lambda: None
        return super().setdefault(name, tenant)


class ShowsWhatOthersSaid(Mutant):
    caught_by = "test_who_takes_a_memory_over_does_not_learn_what_it_was"

    async def history(self, scope, id):
        return [] if self._row(scope, id) is None else await super().history(Scope(scope.tenant), id)


class ForgetsAllWhenAMemoryIsTakenOver(Mutant):
    caught_by = "test_who_takes_a_memory_over_does_not_learn_what_it_was"

    def _store(self, scope, entry):
        row = self._row(scope, entry.id)
        if row is not None and (row.entry.owner, row.entry.namespace) != (entry.owner, entry.namespace):
            self._tenant(scope).remove(entry.id)
        super()._store(scope, entry)


class HistoryNewestFirst(Mutant):
    caught_by = "test_a_history_is_what_was_oldest_first"

    async def history(self, scope, id):
        return (await super().history(scope, id))[::-1]


class HistoryOfUpdatesOnly(Mutant):
    caught_by = "test_a_history_is_what_was_oldest_first"

    def _store(self, scope, entry):
        old = self._row(scope, entry.id)
        super()._store(scope, entry)
        if old is not None:
            row = self._row(scope, entry.id)
            self._tenant(scope).put(type(row)(row.entry, row.digest, row.terms, old.past))


class HistoryHoldsVectors(Mutant):
    caught_by = "test_a_history_is_what_was_oldest_first"

    async def history(self, scope, id):
        return [entry.replace(embedding=[1.0, 0.0]) for entry in await super().history(scope, id)]


class HistoryOutlivesItsMemory(Mutant):
    caught_by = "test_a_history_ends_with_its_memory"

    def _delete(self, scope, id):
        row = self._row(scope, id)
        self.__dict__.setdefault("graves", {})[id] = row.past if row else ()
        return super()._delete(scope, id)

    async def history(self, scope, id):
        return [*self.__dict__.get("graves", {}).get(id, ()), *await super().history(scope, id)]


class RemembersEachRevision(Mutant):
    caught_by = "test_a_history_is_of_what_was_said_and_not_of_what_it_is_worth"

    def _write(self, old, entry, *, is_history=True):
        super()._write(old, entry, is_history=old is not None and entry.revision != old.entry.revision)


class RemembersContentOnly(Mutant):
    caught_by = "test_each_field_that_says_something_has_a_history"

    def _write(self, old, entry, *, is_history=True):
        super()._write(old, entry, is_history=old is not None and entry.content != old.entry.content)


class RemembersTenVersions(Mutant):
    caught_by = "test_a_history_has_the_latest_fifty_versions_at_least"

    async def history(self, scope, id):
        return (await super().history(scope, id))[-10:]


class RemembersTheFirstVersions(Mutant):
    caught_by = "test_a_history_has_the_latest_fifty_versions_at_least"

    async def history(self, scope, id):
        row = self._row(scope, id)
        first = self.__dict__.setdefault("first", [])
        first += [entry for entry in (row.past if row else ()) if entry.revision > len(first)]
        return first[:HISTORY_KEPT]
