"""Bugs in filters."""

import re
from collections.abc import Mapping

from lamina.domain.filters import And, Compare, MemoryFilter, Not, Operator, Or
from mutants.base import Misreads, Mutant

WHERE = "test_a_metadata_filter_agrees_with_the_reference"
BOTH = f"{WHERE} test_random_filters_agree_with_the_reference"
CONDITION = "test_a_condition_agrees_with_the_reference"
MISSING = object()


class Compares(Misreads):
    """Has a comparison of its own; `compare` says NotImplemented where it agrees with the reference."""

    def compare(self, compare: Compare, value):
        raise NotImplementedError

    def admits(self, scope, filter, entry):
        plain = MemoryFilter(**{**{name: getattr(filter, name) for name in MemoryFilter.__slots__}, "where": None})
        return plain.admits(scope, entry) and (filter.where is None or self._holds(filter.where, entry.metadata))

    def _holds(self, filter, metadata):
        match filter:
            case And():
                return all(self._holds(part, metadata) for part in filter.parts)
            case Or():
                return any(self._holds(part, metadata) for part in filter.parts)
            case Not():
                return not self._holds(filter.part, metadata)
        verdict = self.compare(filter, self.look_up(metadata, filter.path))
        return filter.matches(metadata) if verdict is NotImplemented else verdict

    def look_up(self, metadata, path):
        value = metadata
        for part in path:
            if not isinstance(value, Mapping) or part not in value:
                return MISSING
            value = value[part]
        return value


class DropsTheMetadataFilter(Misreads):
    caught_by = f"{BOTH} test_a_metadata_filter_and_conditions_hold_together"

    def admits(self, scope, filter, entry):
        plain = MemoryFilter(**{**{name: getattr(filter, name) for name in MemoryFilter.__slots__}, "where": None})
        return plain.admits(scope, entry)


class NotEqualHoldsForMissingKeys(Compares):
    caught_by = BOTH

    def compare(self, compare, value):
        return True if value is MISSING and compare.operator is Operator.NE else NotImplemented


class NotInHoldsForMissingKeys(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        return True if value is MISSING and compare.operator is Operator.NOT_IN else NotImplemented


class EqualsMatchesNothing(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        return False if compare.operator is Operator.EQ else NotImplemented


class NotIsNeverTrueOfMissingKeys(Misreads):
    caught_by = WHERE

    def admits(self, scope, filter, entry):
        lacking = isinstance(filter.where, Not) and isinstance(filter.where.part, Compare)
        if lacking and filter.where.part.path[0] not in entry.metadata:
            return False
        return filter.admits(scope, entry)


class ComparesNumbersAsText(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        if compare.operator is Operator.GT and isinstance(value, int | float) and not isinstance(value, bool):
            return str(value) > str(compare.operand)
        return NotImplemented


class ComparesNumbersAsFloats(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        if compare.operator is Operator.EQ and type(value) is int and type(compare.operand) is int:
            return float(value) == float(compare.operand)
        return NotImplemented


class TrueIsOne(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        return value == compare.operand if compare.operator is Operator.EQ else NotImplemented


class TextAndNumbersAreEqual(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        if compare.operator is Operator.EQ and isinstance(value, str | int) and value is not True:
            return str(value) == str(compare.operand)
        return NotImplemented


class NullIsMissing(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        return not compare.operand if compare.operator is Operator.EXISTS and value is None else NotImplemented


class SplitsEveryDot(Compares):
    caught_by = WHERE

    def look_up(self, metadata, path):
        return super().look_up(metadata, ".".join(path).split("."))

    def compare(self, compare, value):
        return value == compare.operand if compare.operator is Operator.EQ else NotImplemented


class EntersLists(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        return NotImplemented

    def _holds(self, filter, metadata):
        if isinstance(filter, Compare) and len(filter.path) == 2 and isinstance(metadata.get(filter.path[0]), list):
            listed = dict(enumerate(metadata[filter.path[0]]))
            return filter.matches({filter.path[0]: {str(index): value for index, value in listed.items()}})
        return super()._holds(filter, metadata)


class ContainsIsAPattern(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        if compare.operator is Operator.CONTAINS and isinstance(value, str) and isinstance(compare.operand, str):
            pattern = re.escape(compare.operand).replace("%", ".*").replace("_", ".")
            return re.search(pattern, value) is not None
        return NotImplemented


class ContainsIgnoresCase(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        if compare.operator is Operator.CONTAINS and isinstance(value, str) and isinstance(compare.operand, str):
            return compare.operand.casefold() in value.casefold()
        return NotImplemented


class ContainsSearchesTheJson(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        return str(compare.operand) in str(value) if compare.operator is Operator.CONTAINS else NotImplemented


class OrdersTextByUtf16(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        if compare.operator is Operator.LT and isinstance(value, str) and isinstance(compare.operand, str):
            return value.encode("utf-16-be") < compare.operand.encode("utf-16-be")
        return NotImplemented


class InNothingIsAnything(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        return True if compare.operator is Operator.IN and not compare.operand else NotImplemented


class AtLeastIsMoreThan(Compares):
    caught_by = WHERE

    def compare(self, compare, value):
        if compare.operator is Operator.GTE:
            return Compare(compare.path, Operator.GT, compare.operand).matches({compare.path[0]: value})
        return NotImplemented


class OrOfNothingIsTrue(Misreads):
    caught_by = WHERE

    def admits(self, scope, filter, entry):
        if isinstance(filter.where, Or):
            parts = tuple(part for part in filter.where.parts if part != Or(()))
            return parts != filter.where.parts or filter.admits(scope, entry)
        return filter.admits(scope, entry) or (filter.where == Or(()) and scope.admits(entry))


class Conditions(Misreads):
    """Sees other conditions than those it was given."""

    def changed(self, filter: MemoryFilter) -> dict:
        raise NotImplementedError

    def admits(self, scope, filter, entry):
        fields = {name: getattr(filter, name) for name in MemoryFilter.__slots__}
        return MemoryFilter(**{**fields, **self.changed(filter)}).admits(scope, entry)


class AnyTagWillDo(Conditions):
    caught_by = CONDITION

    def changed(self, filter):
        return {"tags": (), "tags_any": filter.tags_any or filter.tags}


class AllOfAnyTags(Conditions):
    caught_by = CONDITION

    def changed(self, filter):
        return {"tags": filter.tags + filter.tags_any, "tags_any": ()}


class IgnoresLayers(Conditions):
    caught_by = CONDITION

    def changed(self, filter):
        return {"layers": None}


class IgnoresTheMinimum(Conditions):
    caught_by = CONDITION

    def changed(self, filter):
        return {"min_confidence": None}


class IgnoresWhetherThereIsAVector(Conditions):
    caught_by = CONDITION

    def changed(self, filter):
        return {"has_embedding": None}


class MinimumIsExclusive(Misreads):
    caught_by = CONDITION

    def admits(self, scope, filter, entry):
        return filter.admits(scope, entry) and entry.relevance != filter.min_relevance


class BeforeIsInclusive(Misreads):
    caught_by = CONDITION

    def admits(self, scope, filter, entry):
        return filter.admits(scope, entry) or entry.created_at == filter.created_before


class TagsIgnoreCase(Misreads):
    caught_by = CONDITION

    def admits(self, scope, filter, entry):
        return filter.admits(scope, entry.replace(tags=[*entry.tags, *(tag.capitalize() for tag in entry.tags)]))


class JoinsTagsWithCommas(Misreads):
    caught_by = CONDITION

    def admits(self, scope, filter, entry):
        joined = ",".join(entry.tags)
        return filter.admits(scope, entry.replace(tags=[tag for tag in filter.tags if tag in joined]))


class CountsWithoutTheFilter(Mutant):
    caught_by = f"{CONDITION} test_a_page_is_one_of_what_the_filter_admits"

    async def count(self, scope, filter):
        return await super().count(scope, MemoryFilter(now=filter.now))


class ShowsWhatIsSuperseded(Misreads):
    caught_by = CONDITION

    def admits(self, scope, filter, entry):
        return filter.admits(scope, entry.replace(superseded_by=None))


class ShowsWhatIsNoLongerValid(Misreads):
    caught_by = CONDITION

    def admits(self, scope, filter, entry):
        return filter.admits(scope, entry.replace(valid_until=None))
