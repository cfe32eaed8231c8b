"""Bugs in lists, pages, orders, expiry and histories."""

from dataclasses import replace
from datetime import timedelta

from lamina.domain.filters import Expiry
from lamina.ports.memory_adapter import Order
from mutants.base import Misreads, Mutant

EXPIRY = "test_a_memory_is_absent_from_the_instant_of_its_expiry"


class ExpiresTooLate(Misreads):
    caught_by = f"{EXPIRY} test_a_condition_agrees_with_the_reference"

    def admits(self, scope, filter, entry):
        return replace(filter, now=filter.now - timedelta(microseconds=1)).admits(scope, entry)


class ExpiresByTheSecond(Misreads):
    caught_by = EXPIRY

    def admits(self, scope, filter, entry):
        whole = filter.now.replace(microsecond=0) + timedelta(seconds=1)
        return replace(filter, now=whole).admits(scope, entry)


class NeverExpires(Misreads):
    caught_by = f"{EXPIRY} test_a_condition_agrees_with_the_reference"

    def admits(self, scope, filter, entry):
        return replace(filter, expiry=Expiry.ANY).admits(scope, entry)


class GetHidesTheExpired(Mutant):
    caught_by = "test_an_expired_memory_is_still_there_by_its_id"

    async def get(self, scope, id):
        entry = await super().get(scope, id)
        return None if entry and entry.is_expired(entry.updated_at) else entry


class OrdersByCreation(Mutant):
    caught_by = "test_insertion_order_is_kept_whatever_the_clock_does"

    async def list(self, options):
        return sorted(await super().list(options), key=lambda entry: (entry.created_at, entry.id))


class OrdersById(Mutant):
    caught_by = "test_insertion_order_is_kept_whatever_the_clock_does test_a_batch_is_stored_in_its_order"

    async def list(self, options):
        entries = await super().list(options)
        return sorted(entries, key=lambda entry: entry.id) if options.order is Order.INSERTION else entries


class OldestFirstAmongTheRelevant(Mutant):
    caught_by = "test_relevance_comes_first_then_the_newest_then_the_id"

    async def list(self, options):
        entries = await super().list(options)
        if options.order is Order.RELEVANCE:
            entries.sort(key=lambda entry: (-entry.relevance, entry.created_at, entry.id))
        return entries


class RelevanceByInsertion(Mutant):
    caught_by = "test_relevance_comes_first_then_the_newest_then_the_id"

    async def list(self, options):
        entries = await super().list(options)
        if options.order is Order.RELEVANCE:
            entries.sort(key=lambda entry: (-entry.relevance, -entry.created_at.timestamp(), entry.seq))
        return entries


class OrdersByInstantsInSeconds(Mutant):
    caught_by = "test_the_first_and_the_last_instants_come_back_and_are_told_apart"

    async def list(self, options):
        entries = await super().list(options)
        if options.order is Order.RELEVANCE:
            entries.sort(key=lambda entry: (-entry.relevance, -entry.created_at.timestamp(), entry.id))
        return entries


class ListsAThousandAtMost(Mutant):
    caught_by = "test_a_limit_is_honoured_however_large test_pages_by_offset_tile"

    async def list(self, options):
        return (await super().list(options))[:1_000]


class IgnoresTheOffset(Mutant):
    caught_by = "test_pages_by_offset_tile test_a_page_is_one_of_what_the_filter_admits"

    async def list(self, options):
        return await super().list(replace(options, offset=0))


class RefusesLargeLimits(Mutant):
    caught_by = "test_a_limit_is_honoured_however_large"

    async def list(self, options):
        if options.limit > 1_000_000:
            raise OverflowError
        return await super().list(options)


class PagesOverlap(Mutant):
    caught_by = "test_pages_after_a_seq_tile_while_rows_come_and_go"

    async def list(self, options):
        after = options.after and options.after - 1
        return await super().list(replace(options, after=after))


class AfterIsAnOffset(Mutant):
    caught_by = "test_pages_after_a_seq_tile_while_rows_come_and_go"

    async def list(self, options):
        if options.after is not None:
            options = replace(options, after=None, offset=options.after + options.offset)
        return await super().list(options)


class PagesBeforeItFilters(Mutant):
    caught_by = "test_a_page_is_one_of_what_the_filter_admits"

    async def list(self, options):
        anything = replace(options.filter, tags=())
        page = await super().list(replace(options, filter=anything))
        return [entry for entry in page if options.filter.matches(entry)]


class NestsItsLists(Mutant):
    caught_by = "test_a_list_has_every_field_and_the_vector_only_if_asked"

    async def list(self, options):
        return [await super().list(options)]


class ReturnsTuples(Mutant):
    caught_by = "test_lists_are_plain_lists_of_the_callers_own"

    async def list(self, options):
        return tuple(await super().list(options))


class ReturnsNoneForNothing(Mutant):
    caught_by = "test_nothing_is_an_empty_list"

    async def list(self, options):
        return await super().list(options) or None


class ReturnsTheListItKeeps(Mutant):
    caught_by = "test_lists_are_plain_lists_of_the_callers_own"

    async def list(self, options):
        cached = self.__dict__.setdefault("cached", {})
        key = (options.scope, options.limit, options.offset, options.after)
        if key not in cached:
            cached[key] = await super().list(options)
        return cached[key]
