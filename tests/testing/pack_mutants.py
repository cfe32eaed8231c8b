"""Pack stores with one bug each, and tests of the contract that catch it."""

import unicodedata
from dataclasses import replace
from typing import ClassVar

from lamina.domain.instants import to_micros
from lamina.domain.pack_decay import Tier
from lamina.state.sqlite import SqlitePackStore

__all__ = ["MUTANTS", "Mutant"]


class Mutant(SqlitePackStore):
    """A pack store with a bug; `caught_by` names tests of the contract that fail on it, one a word."""

    caught_by: ClassVar[str]

    async def run(self, statement, *parameters):
        """Change what is kept, past the store."""
        return await self._write(lambda connection: connection.execute(statement, parameters).fetchall())


class ForgetsTheProvenance(Mutant):
    caught_by = "test_every_field_of_a_memory_comes_back"

    async def add_memories(self, memories, *, now):
        await super().add_memories([each.replace(provenance=None) for each in memories], now=now)


class ForgetsHowAPackFades(Mutant):
    caught_by = "test_every_field_of_a_pack_comes_back test_how_a_pack_fades_of_its_own_goes_before_its_type"

    async def create_pack(self, pack):
        await super().create_pack(pack.replace(decay=None))


class ComposesTexts(Mutant):
    caught_by = "test_the_longest_texts_and_other_normal_forms_come_back"

    async def add_memories(self, memories, *, now):
        composed = [each.replace(content=unicodedata.normalize("NFC", each.content)) for each in memories]
        await super().add_memories(composed, now=now)


class KeepsOnlyTheSummary(Mutant):
    caught_by = "test_the_longest_texts_and_other_normal_forms_come_back"

    async def set_tier(self, tenant, id, tier, **options):
        [found] = await self.get_memories(tenant, [id])
        done = await super().set_tier(tenant, id, tier, **options)
        if done and tier is not Tier.FULL:
            short = found.replace(content=found.content[: len(found.content) // 3 or 1], tier=tier)
            await self.save_memory(short, expected_revision=found.revision + 1, now=options["now"])
        return done


class KeepsWhatItHandsOut(Mutant):
    caught_by = "test_what_is_returned_of_memories_is_the_callers_own"

    async def get_memories(self, tenant, ids, **options):
        kept = vars(self).setdefault("_kept", {})
        for each in await super().get_memories(tenant, ids, **options):
            kept.setdefault((tenant, each.id), each)
        return [kept[tenant, id] for id in ids if (tenant, id) in kept]


class AddsOneByOne(Mutant):
    caught_by = "test_of_a_batch_all_is_added_or_nothing"

    async def add_memories(self, memories, *, now):
        for each in memories:
            await super().add_memories([each], now=now)


class TakesOtherCaseForTheSame(Mutant):
    caught_by = "test_tenants_whose_names_look_alike_are_apart"

    async def get_memories(self, tenant, ids, **options):
        return await super().get_memories(tenant.lower(), ids, **options)


class ShowsOtherOwnersPacks(Mutant):
    caught_by = "test_owners_whose_names_look_alike_are_apart test_a_query_of_packs_is_kept_to_in_all_it_says"

    async def list_packs(self, query, **options):
        return await super().list_packs(replace(query, any_owner=True), **options)


class ShowsFacesFromTheBeginning(Mutant):
    caught_by = "test_a_walk_over_faces_goes_by_id_and_stays_in_place"

    async def pack_faces(self, query, *, limit, after=None):
        found = await super().pack_faces(query, limit=99)
        start = next((at for at, each in enumerate(found, 1) if each.id == after), 0)
        return found[start : start + limit] if start or after is None else []


class FindsASharedPackForAnOwner(Mutant):
    caught_by = "test_a_name_is_taken_once_for_each_owner"

    async def find_pack(self, tenant, name, *, owner):
        own = await super().find_pack(tenant, name, owner=owner)
        return own or await super().find_pack(tenant, name, owner=None)


class KeepsNamesOfDeletedPacks(Mutant):
    caught_by = "test_an_archived_pack_keeps_its_name_and_a_deleted_one_does_not"

    async def initialize(self):
        await super().initialize()
        await self.run(
            "CREATE UNIQUE INDEX IF NOT EXISTS mutant ON lamina_pack_heads (tenant, name) WHERE owner IS NULL"
        )


class SavesPacksOverAnyRevision(Mutant):
    caught_by = "test_a_pack_is_saved_over_its_own_revision_only test_of_many_who_save_over_one_revision_one_does"

    async def save_pack(self, pack, *, expected_revision):
        while found := await self.get_packs(pack.tenant, [pack.id]):
            if await super().save_pack(pack, expected_revision=found[0].revision):
                return True
        return False


class SavesMemoriesOverAnyRevision(Mutant):
    caught_by = "test_a_memory_is_saved_over_its_own_revision_only test_of_many_who_save_over_one_revision_one_does"

    async def save_memory(self, memory, *, expected_revision, now):
        while found := await self.get_memories(memory.tenant, [memory.id]):
            if await super().save_memory(memory, expected_revision=found[0].revision, now=now):
                return True
        return False


class MarksOneSideOnly(Mutant):
    caught_by = "test_superseding_by_call_writes_both_sides_once"

    async def supersede(self, tenant, old_id, *, by, now):
        await super().supersede(tenant, old_id, by=by, now=now)
        await self.run("DELETE FROM lamina_pack_relations")


class ClosesCircles(Mutant):
    caught_by = "test_no_circle_is_ever_closed test_two_who_supersede_each_other_close_no_circle"

    async def supersede(self, tenant, old_id, *, by, now):
        await self.run(
            "UPDATE lamina_pack_memories SET superseded_by = ? WHERE tenant = ? AND id = ?", by, tenant, old_id
        )


class LeavesNamesToTheFormer(Mutant):
    caught_by = "test_a_name_is_taken_over_by_superseding"

    async def add_memories(self, memories, *, now):
        taken = {each[0] for each in await self.run("SELECT name FROM lamina_pack_memories")}
        await super().add_memories(
            [each.replace(name=None) if each.name in taken else each for each in memories], now=now
        )


class LeavesTheDeadAboveTheLiving(Mutant):
    caught_by = "test_deleting_makes_live_again"

    async def delete_memory(self, tenant, id):
        await self.run("UPDATE lamina_pack_relations SET type = 'superseded'")
        return await super().delete_memory(tenant, id)


class PurgesThePackAlone(Mutant):
    caught_by = "test_a_purge_leaves_nothing_of_the_pack"

    async def purge_pack(self, tenant, id):
        for each in await self.run("SELECT id FROM lamina_pack_memories WHERE tenant = ?", tenant):
            await self.run("UPDATE lamina_pack_relations SET type = 'superseded'")
            found = await self.get_memories(tenant, [each[0]], with_content=False)
            if found and found[0].pack_id == id:
                await self.delete_memory(tenant, each[0])
        return await super().purge_pack(tenant, id)


class CountsInTwoSteps(Mutant):
    caught_by = "test_of_many_accesses_at_once_each_is_counted test_two_accesses_from_two_stores_count_two"

    async def touch(self, tenant, ids, *, now):
        before = await self.get_memories(tenant, ids, with_content=False)
        found = await super().touch(tenant, ids, now=now)
        for each in before:
            await self.run(
                "UPDATE lamina_pack_memories SET access_count = ? WHERE tenant = ? AND id = ?",
                each.access_count + 1,
                tenant,
                each.id,
            )
        return found


class CountsEachMention(Mutant):
    caught_by = "test_reading_counts_once_and_puts_back_to_full"

    async def touch(self, tenant, ids, *, now):
        found = {}
        for id in ids:
            found |= await super().touch(tenant, [id], now=now)
        return found


class ReadsWhatIsArchived(Mutant):
    caught_by = "test_archived_and_deleted_ones_are_not_read_and_superseded_ones_are"

    async def touch(self, tenant, ids, *, now):
        await self.run("UPDATE lamina_pack_memories SET tier = 'full' WHERE tier = 'archived'")
        return await super().touch(tenant, ids, now=now)


class TakesAccessesBack(Mutant):
    caught_by = "test_a_clock_that_goes_back_takes_no_access_back"

    async def touch(self, tenant, ids, *, now):
        found = await super().touch(tenant, ids, now=now)
        await self.run("UPDATE lamina_pack_memories SET last_accessed = ?", to_micros(now))
        return found


class WalksPastTies(Mutant):
    caught_by = "test_the_walk_over_what_is_due_tiles"

    async def due(self, tenant, *, after=None, **asked):
        behind = None if after is None else replace(after, id="\U0010ffff")
        return await super().due(tenant, after=behind, **asked)


class TellsOfEveryPack(Mutant):
    caught_by = "test_what_is_due_of_one_pack_is_of_that_alone"

    async def due(self, tenant, *, pack_id=None, **asked):
        return await super().due(tenant, **asked)


class LetsPinnedOnesFade(Mutant):
    caught_by = "test_a_pinned_memory_is_due_when_it_expires_and_not_before"

    async def add_memories(self, memories, *, now):
        await super().add_memories([each.replace(pinned_at=None) for each in memories], now=now)


class ForgetsToReckonAnew(Mutant):
    caught_by = "test_when_memories_are_due_follows_the_pack"

    async def save_pack(self, pack, *, expected_revision):
        before = await self.run("SELECT due_at, key FROM lamina_pack_memories")
        saved = await super().save_pack(pack, expected_revision=expected_revision)
        for row in before:
            await self.run("UPDATE lamina_pack_memories SET due_at = ? WHERE key = ?", *row)
        return saved


class DemotesWhatWasJustRead(Mutant):
    caught_by = "test_what_was_read_meanwhile_is_no_longer_due"

    async def set_tier(self, tenant, id, tier, *, expected_revision, now, only_if_due=False):
        return await super().set_tier(tenant, id, tier, expected_revision=expected_revision, now=now)


class TakesMarksBack(Mutant):
    caught_by = "test_a_mark_is_never_taken_back_nor_set_ahead"

    async def mark_projected(self, tenant, revisions):
        await self.run("UPDATE lamina_pack_memories SET projected = 0 WHERE tenant = ?", tenant)
        await super().mark_projected(tenant, revisions)


class CountsWhatIsSuperseded(Mutant):
    caught_by = "test_a_pack_is_counted_without_what_is_superseded_or_deleted"

    async def statistics(self, tenant, pack_id):
        found = await super().statistics(tenant, pack_id)
        query = "SELECT count(*) FROM lamina_pack_memories WHERE tenant = ? AND NOT is_deleted"
        [(count,)] = await self.run(query, tenant)
        return replace(found, memory_count=count)


class PagesOverlap(Mutant):
    caught_by = "test_pages_of_memories_tile"

    async def find_memories(self, query, *, offset=0, **options):
        return await super().find_memories(query, offset=max(offset - 1, 0), **options)


class FindsAnyOfTheTags(Mutant):
    caught_by = "test_a_query_of_memories_is_kept_to_in_all_it_says"

    async def find_memories(self, query, **options):
        return await super().find_memories(replace(query, tags=query.tags[:1]), **options)


class TakesWhatItIsGiven(Mutant):
    caught_by = "test_a_memory_that_cannot_be_kept_is_refused"

    async def add_memories(self, memories, *, now):
        taken = [each.replace(confidence=1.0) if each.confidence is True else each for each in memories]
        await super().add_memories(taken, now=now)


MUTANTS = [each for each in Mutant.__subclasses__() if "caught_by" in vars(each)]
