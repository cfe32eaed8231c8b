"""State stores with one bug each, and tests of the contract that catch it."""

import json
from dataclasses import replace
from typing import ClassVar

from lamina.domain.message_json import canonical_json
from lamina.domain.thread import ThreadKind, ThreadRef
from lamina.state.sqlite import SqliteStateStore

__all__ = ["MUTANTS", "Mutant"]


class Mutant(SqliteStateStore):
    """A state store with a bug; `caught_by` names tests of the contract that fail on it, one a word."""

    caught_by: ClassVar[str]

    async def run(self, statement, *parameters):
        """Change what is kept, past the store."""
        return await self._write(lambda connection: connection.execute(statement, parameters).fetchall())


class ForgetsExtra(Mutant):
    caught_by = "test_every_field_of_a_message_comes_back"

    async def append(self, ref, events, *, now):
        return await super().append(
            ref, [each.replace(message=each.message.replace(extra={})) for each in events], now=now
        )


class MakesNumbersFloats(Mutant):
    caught_by = "test_every_field_of_a_message_comes_back"

    async def append(self, ref, events, *, now):
        floats = [each.replace(state=json.loads(json.dumps(each.state), parse_int=float)) for each in events]
        return await super().append(ref, floats, now=now)


class ForgetsTheNamespace(Mutant):
    caught_by = "test_every_field_of_a_head_comes_back"

    async def create_thread(self, thread):
        return await super().create_thread(thread.replace(namespace=None))


class BeginsInTwoSteps(Mutant):
    caught_by = "test_a_thread_begins_with_its_first_messages_or_not_at_all"

    async def begin_thread(self, thread, events, *, now):
        if await self.get_thread(thread.ref) is not None:
            return None
        await self.create_thread(thread)
        return await self.append(thread.ref, events, now=now)


class BeginsAThreadThatIsThere(Mutant):
    caught_by = "test_a_thread_begins_with_its_first_messages_or_not_at_all test_of_many_who_begin_one_thread_one_does"

    async def begin_thread(self, thread, events, *, now):
        await self.create_thread(thread)
        return await self.append(thread.ref, events, now=now)


class ForgetsTopics(Mutant):
    caught_by = "test_every_field_of_a_summary_comes_back"

    async def fold(self, ref, summary, **options):
        return await super().fold(ref, summary.replace(topics=[]), **options)


class ForgetsOptions(Mutant):
    caught_by = "test_every_field_of_a_document_comes_back"

    async def save_document(self, document, *, expected_generation):
        return await super().save_document(document.replace(options={}), expected_generation=expected_generation)


class FillsInNoParent(Mutant):
    caught_by = "test_what_is_missing_is_filled_in"

    async def append(self, ref, events, *, now):
        added = await super().append(ref, events, now=now)
        await self.run("UPDATE lamina_messages SET message = json_remove(message, '$.parent')")
        return [each.replace(message=each.message.replace(parent=None)) for each in added]


class KeepsWhatItHandsOut(Mutant):
    caught_by = "test_what_is_returned_and_what_was_given_are_not_the_stores"

    async def events(self, ref, **options):
        kept = vars(self).setdefault("_kept", {})
        for each in await super().events(ref, **options):
            kept.setdefault((ref, each.message.id), each)
        return [kept[ref, each.message.id] for each in await super().events(ref, **options)]


class TakesOtherCaseForTheSame(Mutant):
    caught_by = "test_threads_whose_names_look_alike_are_apart"

    async def append(self, ref, events, *, now):
        return await super().append(replace(ref, id=ref.id.lower()), events, now=now)

    async def events(self, ref, **options):
        return await super().events(replace(ref, id=ref.id.lower()), **options)


class DeletesByPattern(Mutant):
    caught_by = "test_threads_whose_names_look_alike_are_apart"

    async def delete_thread(self, ref, **options):
        rows = await self.run("SELECT id FROM lamina_threads WHERE tenant = ? AND id LIKE ?", ref.tenant, ref.id)
        return any(
            [await super(DeletesByPattern, self).delete_thread(replace(ref, id=id), **options) for (id,) in rows]
        )


class MixesTenants(Mutant):
    caught_by = "test_tenants_whose_names_look_alike_are_apart"

    async def find_documents(self, tenant, **options):
        rows = await self.run("SELECT DISTINCT tenant FROM lamina_documents")
        return [each for (other,) in rows for each in await super(MixesTenants, self).find_documents(other, **options)]


class MixesKinds(Mutant):
    caught_by = "test_a_thread_and_a_session_of_one_name_are_apart"

    async def get_thread(self, ref):
        other = ThreadKind.THREAD if ref.kind is ThreadKind.SESSION else ThreadKind.SESSION
        return await super().get_thread(ref) or await super().get_thread(replace(ref, kind=other))


class ReplacesAThreadThatIsThere(Mutant):
    caught_by = "test_a_thread_that_is_there_is_returned_and_stays"

    async def create_thread(self, thread):
        await self.run("UPDATE lamina_threads SET owner = ? WHERE id = ?", thread.owner, thread.id)
        return await super().create_thread(thread)


class ListsInOrderOfCreation(Mutant):
    caught_by = "test_the_latest_activity_comes_first_and_then_the_id"

    async def list_threads(self, tenant, kind=ThreadKind.THREAD, **options):
        return sorted(await super().list_threads(tenant, kind, **options), key=lambda each: (each.created_at, each.id))


class PassesOverOffsets(Mutant):
    caught_by = "test_pages_of_threads_tile test_heads_stand_by_source_and_then_id_and_pages_tile"

    async def list_threads(self, tenant, kind=ThreadKind.THREAD, *, offset=0, **options):
        return await super().list_threads(tenant, kind, **options)

    async def find_documents(self, tenant, *, offset=0, **options):
        return await super().find_documents(tenant, **options)


class GoesOnWhereTheLastOneIs(Mutant):
    caught_by = (
        "test_pages_of_threads_do_not_move_when_others_are_made_and_deleted "
        "test_pages_of_documents_do_not_move_when_others_are_made_and_deleted"
    )

    async def list_threads(self, tenant, kind=ThreadKind.THREAD, *, limit=100, after=None, **options):
        found = await super().list_threads(tenant, kind, **options)
        start = next((at for at, each in enumerate(found, 1) if after == (each.updated_at, each.id)), 0)
        return found[start : start + limit] if start or after is None else []

    async def find_documents(self, tenant, *, limit=None, after=None, **options):
        found = await super().find_documents(tenant, **options)
        start = next((at for at, each in enumerate(found, 1) if after == (each.source, each.id)), 0)
        return found[start:][:limit] if start or after is None else []


class DeletesAThreadThatWasBegunAnew(Mutant):
    caught_by = "test_a_thread_of_another_revision_or_instant_is_not_deleted"

    async def delete_thread(self, ref, *, expected_created_at=None, **options):
        return await super().delete_thread(ref, **options)


class ShowsThreadsOfNobodyToAnOwner(Mutant):
    caught_by = "test_an_owner_sees_its_own_threads_and_nobody_elses"

    async def list_threads(self, tenant, kind=ThreadKind.THREAD, *, owner=None, **options):
        found = await super().list_threads(tenant, kind, **options)
        return [each for each in found if owner is None or each.owner in {owner, None}]


class PassesOverTheRevision(Mutant):
    caught_by = "test_a_head_of_another_revision_is_not_changed"

    async def update_thread(self, ref, *, now, expected_revision=None, **options):
        return await super().update_thread(ref, now=now, **options)


class TakesMessagesIntoAnArchivedThread(Mutant):
    caught_by = "test_an_archived_thread_takes_no_messages_and_keeps_what_it_has"

    async def append(self, ref, events, *, now):
        await self.run("UPDATE lamina_threads SET status = 'active' WHERE id = ?", ref.id)
        return await super().append(ref, events, now=now)


class MakesAThreadOnAppend(Mutant):
    caught_by = "test_no_thread_takes_no_messages"

    async def append(self, ref, events, *, now):
        from lamina.domain.thread import Thread

        await self.create_thread(Thread(ref.id, ref.tenant, now, now, ref.kind))
        return await super().append(ref, events, now=now)


class LeavesSummariesOfTheDeleted(Mutant):
    caught_by = "test_nothing_is_left_of_a_deleted_thread"

    async def summaries(self, ref, *, limit=None):
        kept = vars(self).setdefault("_seen", {})
        found = await super().summaries(ref, limit=limit)
        return found or kept.get(ref, [])

    async def fold(self, ref, summary, **options):
        vars(self).setdefault("_seen", {})[ref] = [summary]
        return await super().fold(ref, summary, **options)


class OrdersByTheClock(Mutant):
    caught_by = "test_messages_stand_in_the_order_in_which_they_were_added"

    async def events(self, ref, **options):
        return sorted(await super().events(ref, **options), key=lambda each: each.message.timestamp)


class GivesIndexesAgain(Mutant):
    caught_by = "test_an_index_is_never_given_twice"

    async def delete_events(self, ref, ids):
        gone = await super().delete_events(ref, ids)
        await self.run(
            "UPDATE lamina_threads SET last_index = max(folded_through, ifnull((SELECT max(key & 4294967295) "
            "FROM lamina_messages WHERE thread = lamina_threads.key), 0))"
        )
        return gone


class AddsTheSameMessageTwice(Mutant):
    caught_by = "test_a_message_that_is_there_is_not_added_again"

    async def append(self, ref, events, *, now):
        there = {each.message.id for each in await self.find_events(ref, [each.message.id for each in events])}
        again = [
            each.replace(message=each.message.replace(id=f"{each.message.id}+")) if each.message.id in there else each
            for each in events
        ]
        return await super().append(ref, again, now=now)


class AddsOneByOne(Mutant):
    caught_by = "test_one_event_that_cannot_be_kept_keeps_out_all_of_its_call"

    async def append(self, ref, events, *, now):
        return [added for event in events for added in await super(AddsOneByOne, self).append(ref, [event], now=now)]


class PartsWhatIsAddedTogether(Mutant):
    caught_by = "test_of_many_appends_at_once_none_is_lost_and_each_stays_together"

    async def append(self, ref, events, *, now):
        return [
            added
            for event in events
            for added in await super(PartsWhatIsAddedTogether, self).append(ref, [event], now=now)
        ]


class CountsBothEndsOfARange(Mutant):
    caught_by = "test_a_part_of_a_thread_is_read"

    async def events(self, ref, *, after=0, before=None, **options):
        return await super().events(ref, after=after, before=None if before is None else before + 1, **options)


class ReadsTheOldestAsTheNewest(Mutant):
    caught_by = "test_a_part_of_a_thread_is_read"

    async def events(self, ref, *, newest=False, **options):
        return await super().events(ref, **options)


class FindsInTheOrderOfTheIds(Mutant):
    caught_by = "test_messages_are_found_by_their_ids_in_order"

    async def find_events(self, ref, ids):
        found = {each.message.id: each for each in await super().find_events(ref, ids)}
        return [found[id] for id in ids if id in found]


class LosesFoldedSystemMessages(Mutant):
    caught_by = "test_the_systems_messages_are_found_without_the_others"

    async def system_events(self, ref, *, before):
        head = await self.get_thread(ref)
        found = await super().system_events(ref, before=before)
        return [each for each in found if each.message.index > head.folded_through]


class CountsTheDeletedAsLive(Mutant):
    caught_by = "test_deleted_messages_are_gone"

    async def live_size(self, ref):
        rows = await self.run("SELECT last_index - folded_through, 0 FROM lamina_threads WHERE id = ?", ref.id)
        return (rows[0][0], 2 * rows[0][0]) if rows else (0, 0)


class TakesFoldedMessagesForLive(Mutant):
    caught_by = "test_a_thread_as_it_stands_is_what_single_looks_say"

    async def live(self, ref, *, with_events=True):
        found = await super().live(ref, with_events=with_events)
        if found is not None and with_events:
            found.events = await self.events(ref)
        return found


class ReplacesWhateverIsThere(Mutant):
    caught_by = (
        "test_nothing_is_replaced_if_one_is_no_longer_what_was_read test_of_many_who_replace_the_same_message_one_does"
    )

    async def replace_events(self, ref, events, *, expected):
        return await super().replace_events(ref, events, expected=[])


class ComparesMessagesOnly(Mutant):
    caught_by = "test_every_difference_counts"

    async def replace_events(self, ref, events, *, expected):
        kept = {each.message.index: each for each in await self.events(ref)}
        lenient = [replace(kept.get(each.message.index, each), message=each.message) for each in expected]
        return await super().replace_events(ref, events, expected=lenient)


class ComparesTheOrderOfKeys(Mutant):
    caught_by = "test_the_order_of_keys_is_no_difference"

    async def replace_events(self, ref, events, *, expected):
        kept = {each.message.index: each for each in await self.events(ref)}
        for each in expected:
            if each.message.index in kept and str(kept[each.message.index].state) != str(each.state):
                return False
        return await super().replace_events(ref, events, expected=expected)


class ReplacesWhatItFinds(Mutant):
    caught_by = "test_what_is_not_there_is_not_replaced_and_nothing_else_is"

    async def replace_events(self, ref, events, *, expected):
        there = {each.message.id for each in await self.events(ref)}
        return await super().replace_events(
            ref, [each for each in events if each.message.id in there], expected=expected
        )


class DeletesWhatIsFolded(Mutant):
    caught_by = "test_what_is_folded_is_kept_and_no_longer_live"

    async def fold(self, ref, summary, **options):
        done = await super().fold(ref, summary, **options)
        if done:
            await self.delete_events(ref, [each.message.id for each in await self.events(ref, before=summary.to_index)])
        return done


class FoldsAllThatIsThere(Mutant):
    caught_by = "test_messages_that_came_meanwhile_survive"

    async def fold(self, ref, summary, **options):
        head = await self.get_thread(ref)
        return await super().fold(ref, summary.replace(to_index=head.last_index if head else 1), **options)


class FoldsUntilItWins(Mutant):
    caught_by = "test_who_lost_the_race_changes_nothing test_of_many_who_fold_at_once_one_does"

    async def fold(self, ref, summary, *, expected_folded_through, **options):
        while (head := await self.get_thread(ref)) and head.folded_through <= summary.to_index:
            if await super().fold(ref, summary, expected_folded_through=head.folded_through, **options):
                break
        return head is not None


class FoldsASuccessor(Mutant):
    caught_by = "test_a_summary_of_a_deleted_thread_does_not_land_in_its_successor"

    async def fold(self, ref, summary, *, expected_created_at=None, **options):
        return await super().fold(ref, summary, **options)


class KeepsTheLastSummaryOnly(Mutant):
    caught_by = "test_former_summaries_are_kept_newest_first"

    async def summaries(self, ref, *, limit=None):
        return (await super().summaries(ref, limit=limit))[:1]


class UnfoldsAll(Mutant):
    caught_by = "test_unfolding_goes_back_step_by_step"

    async def unfold(self, ref, *, expected_folded_through, now):
        done = await super().unfold(ref, expected_folded_through=expected_folded_through, now=now)
        while done and (head := await self.get_thread(ref)).folded_through:
            await super().unfold(ref, expected_folded_through=head.folded_through, now=now)
        return done


class SavesOverATakenId(Mutant):
    caught_by = "test_an_id_is_taken_once"

    async def save_document(self, document, *, expected_generation):
        if expected_generation is None:
            await self.run("DELETE FROM lamina_documents WHERE id = ?", document.id)
        return await super().save_document(document, expected_generation=expected_generation)


class SavesUntilItWins(Mutant):
    caught_by = (
        "test_a_head_is_replaced_only_over_the_expected_generation test_of_many_who_save_over_one_generation_one_does"
    )

    async def save_document(self, document, *, expected_generation):
        if expected_generation is None:
            return await super().save_document(document, expected_generation=None)
        while found := await self.get_documents(document.tenant, [document.id]):
            if await super().save_document(document, expected_generation=found[0].generation):
                return True
        return False


class DeletesAnyGeneration(Mutant):
    caught_by = "test_a_head_is_deleted_only_at_the_expected_generation"

    async def delete_document(self, tenant, id, *, expected_generation=None):
        return await super().delete_document(tenant, id)


class FindsSourcesByPrefix(Mutant):
    caught_by = "test_heads_are_found_by_source_exactly"

    async def find_documents(self, tenant, *, source=None, **options):
        found = await super().find_documents(tenant, **options)
        return [each for each in found if source is None or each.source.startswith(source)]


class HidesSharedDocuments(Mutant):
    caught_by = "test_heads_are_found_by_owner"

    async def find_documents(self, tenant, *, include_shared=True, **options):
        return await super().find_documents(tenant, include_shared=False, **options)


class SeesOnlyItsOwnMessages(Mutant):
    caught_by = "test_two_stores_on_one_place_share_all_of_it"

    async def events(self, ref, **options):
        own = vars(self).setdefault("_own_ids", set())
        return [each for each in await super().events(ref, **options) if not own or each.message.id in own]

    async def append(self, ref, events, *, now):
        added = await super().append(ref, events, now=now)
        vars(self).setdefault("_own_ids", set()).update(each.message.id for each in added)
        return added


class StaysOpen(Mutant):
    caught_by = "test_opening_and_closing_twice_is_no_different"

    async def close(self):
        pass


class ForgetsWhenItCloses(Mutant):
    caught_by = "test_what_was_acknowledged_is_there_after_opening_again"

    async def close(self):
        if self._handle is not None:
            await self.run("DELETE FROM lamina_documents")
        await super().close()


class AnswersMissingWithAnError(Mutant):
    caught_by = "test_what_is_not_there_is_nothing"

    async def live_size(self, ref):
        if await self.get_thread(ref) is None:
            raise LookupError(canonical_json(ref.id))
        return await super().live_size(ref)


class TakesAnyPage(Mutant):
    caught_by = "test_a_page_of_less_than_nothing_is_refused"

    async def events(self, ref, *, limit=None, **options):
        return await super().events(ref, limit=None if limit is None else max(0, int(limit)), **options)


class TakesAnyName(Mutant):
    caught_by = "test_a_name_that_can_name_nothing_is_refused"

    async def get_thread(self, ref):
        try:
            return await super().get_thread(ref)
        except ValueError:
            return None


class RenamesAParameter(Mutant):
    caught_by = "test_the_signatures_are_the_ports"

    async def get_thread(self, reference: ThreadRef):
        return await super().get_thread(reference)


MUTANTS = [each for each in Mutant.__subclasses__() if "caught_by" in vars(each)]
