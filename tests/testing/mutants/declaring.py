"""Bugs in what an adapter says of itself, and in what it does without having said so."""

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.domain.filters import MemoryFilter
from lamina.errors import Unsupported
from lamina.ports.memory_adapter import Capability
from mutants.base import Mutant, without

SIGNATURES = "test_the_signatures_are_the_ports"
DECLARED = "test_the_name_and_the_capabilities_are_declared"
UNDECLARED = "test_what_is_not_declared_is_refused"


class RenamesAParameter(Mutant):
    caught_by = SIGNATURES

    async def get(self, scope, memory_id):
        return await super().get(scope, memory_id)


class ReordersParameters(Mutant):
    caught_by = SIGNATURES

    async def count(self, filter, scope):
        return await super().count(scope, filter)


class AddsAParameterWithoutADefault(Mutant):
    caught_by = SIGNATURES

    async def delete(self, scope, id, *, reason, expected_revision=None):
        return await super().delete(scope, id, expected_revision=expected_revision)


class AddsAPositionalParameter(Mutant):
    caught_by = SIGNATURES

    async def delete(self, scope, id, reason="", *, expected_revision=None):
        return await super().delete(scope, id, expected_revision=expected_revision)


class ChangesADefault(Mutant):
    caught_by = f"{SIGNATURES} test_without_being_asked_twins_are_stored"

    async def store_many(self, scope, entries, *, if_new=True):
        return await super().store_many(scope, entries, if_new=if_new)


class IsNoCoroutine(Mutant):
    caught_by = SIGNATURES

    def count(self, scope, filter):
        return super().count(scope, filter)


class HasABlankName(Mutant):
    caught_by = DECLARED
    name = " "


class DeclaresATuple(Mutant):
    caught_by = DECLARED
    capabilities = tuple(InMemoryAdapter.capabilities)


class DeclaresWords(Mutant):
    caught_by = DECLARED
    capabilities = InMemoryAdapter.capabilities | {"speed"}


class DropsFiltersInSilence(Mutant):
    caught_by = f"{UNDECLARED} test_a_search_with_metadata_filters_is_refused_if_filters_are"
    capabilities = without(Capability.FILTER)

    def _admitted(self, scope, filter, *, after=0):
        return super()._admitted(scope, MemoryFilter(now=filter.now), after=after)


class RefusesFiltersInListsOnly(Mutant):
    caught_by = "test_a_search_with_metadata_filters_is_refused_if_filters_are"
    capabilities = without(Capability.FILTER)

    async def list(self, options):
        if options.filter.where is not None:
            raise Unsupported(self.name, Capability.FILTER)
        return await super().list(options)

    async def count(self, scope, filter):
        if filter.where is not None:
            raise Unsupported(self.name, Capability.FILTER)
        return await super().count(scope, filter)


class HasNoHistoryInSilence(Mutant):
    caught_by = UNDECLARED
    capabilities = without(Capability.HISTORY)

    async def history(self, scope, id):
        return []


class RefusesWhatItDeclares(Mutant):
    caught_by = f"{UNDECLARED} test_a_history_is_what_was_oldest_first"

    async def history(self, scope, id):
        raise Unsupported(self.name, Capability.HISTORY)


class NamesTheWrongCapability(Mutant):
    caught_by = UNDECLARED
    capabilities = without(Capability.TEXT)

    async def search_by_text(self, query, options):
        raise Unsupported(self.name, Capability.VECTOR)
