"""Bugs in vector search and text search."""

import re

import numpy as np

from lamina.domain.filters import MemoryFilter
from lamina.domain.lexical import count_terms, index_terms, query_terms, similarity
from lamina.domain.scope import Scope
from lamina.errors import EmbeddingDimensionError
from lamina.ports.memory_adapter import Capability, SearchHit, SearchOptions, TermStatistics
from mutants.base import Mutant, without

EXACT = "test_the_closest_come_first_with_their_cosine"


class Ranks(Mutant):
    """Has a measure of its own for vectors."""

    def measure(self, query, vector):
        raise NotImplementedError

    async def search_by_vector(self, embedding, options):
        await super().search_by_vector(embedding, options)
        rows = [row for row in self._admitted(options.scope, options.filter) if row.entry.embedding is not None]
        hits = [
            SearchHit(row.entry.replace(embedding=None), self.measure(embedding, row.entry.embedding)) for row in rows
        ]
        return sorted(hits, key=lambda hit: (-hit.similarity, hit.entry.id))[: options.limit]


class DistanceForSimilarity(Ranks):
    caught_by = f"{EXACT} test_many_vectors_are_ranked_as_the_definition_says"

    def measure(self, query, vector):
        return 1 - float(np.dot(query, vector) / np.linalg.norm(query) / np.linalg.norm(vector))


class InnerProduct(Ranks):
    caught_by = "test_length_does_not_count"

    def measure(self, query, vector):
        return float(np.dot(query, vector))


class CosineBetweenZeroAndOne(Ranks):
    caught_by = EXACT

    def measure(self, query, vector):
        return (1 + float(np.dot(query, vector) / np.linalg.norm(query) / np.linalg.norm(vector))) / 2


class NormInSinglePrecision(Ranks):
    caught_by = "test_tiny_and_huge_vectors_of_any_kind_have_a_direction_too"

    def measure(self, query, vector):
        with np.errstate(all="ignore"):
            a, b = np.array(query, np.float32), np.array(vector, np.float32)
            norm = np.sqrt((a * a).sum()) * np.sqrt((b * b).sum())
            return float((a * b).sum() / norm) if norm else 0.0


class ZeroIsCloseToZero(Ranks):
    caught_by = "test_a_zero_vector_is_close_to_nothing"

    def measure(self, query, vector):
        if not any(query) or not any(vector):
            return 1.0
        return float(np.dot(query, vector) / np.linalg.norm(query) / np.linalg.norm(vector))


class Quantises(Ranks):
    caught_by = "test_many_vectors_are_ranked_as_the_definition_says"

    def measure(self, query, vector):
        a, b = np.round(np.array(query) * 5), np.round(np.array(vector) * 5)
        return float(np.dot(a, b) / ((np.linalg.norm(a) * np.linalg.norm(b)) or 1))


class TiesByInsertion(Mutant):
    caught_by = "test_vectors_that_tie_are_ordered_by_id test_words_that_tie_are_ordered_by_id"

    async def search_by_vector(self, embedding, options):
        return self._resorted(await super().search_by_vector(embedding, _unlimited(options)), options)

    async def search_by_text(self, query, options):
        return self._resorted(await super().search_by_text(query, _unlimited(options)), options)

    def _resorted(self, hits, options):
        return sorted(hits, key=lambda hit: (-hit.similarity, hit.entry.seq))[: options.limit]


class IgnoresTheLimit(Mutant):
    caught_by = (
        "test_no_more_vectors_are_found_than_asked_for test_no_more_texts_are_found_than_asked_for "
        "test_vectors_that_tie_are_ordered_by_id"
    )

    async def search_by_vector(self, embedding, options):
        return await super().search_by_vector(embedding, _unlimited(options))

    async def search_by_text(self, query, options):
        return await super().search_by_text(query, _unlimited(options))


class FindsAtMostFive(Mutant):
    caught_by = "test_no_more_vectors_are_found_than_asked_for test_no_more_texts_are_found_than_asked_for"

    async def search_by_vector(self, embedding, options):
        return (await super().search_by_vector(embedding, options))[:5]

    async def search_by_text(self, query, options):
        return (await super().search_by_text(query, options))[:5]


class FiltersAfterRanking(Mutant):
    caught_by = (
        "test_scope_and_filter_hold_before_vectors_are_ranked test_scope_and_filter_hold_before_texts_are_ranked"
    )

    async def search_by_vector(self, embedding, options):
        return self._filtered(await super().search_by_vector(embedding, _pool(options)), options)

    async def search_by_text(self, query, options):
        return self._filtered(await super().search_by_text(query, _pool(options)), options)

    def _filtered(self, hits, options):
        kept = [
            hit for hit in hits if options.filter.admits(options.scope, self._row(options.scope, hit.entry.id).entry)
        ]
        return kept[: options.limit]


class FindsEntriesWithoutVectors(Mutant):
    caught_by = "test_only_what_has_a_vector_is_found"

    async def search_by_vector(self, embedding, options):
        hits = await super().search_by_vector(embedding, options)
        rows = self._admitted(options.scope, options.filter)
        return hits + [SearchHit(row.entry, 0.0) for row in rows if row.entry.embedding is None]


class KeepsOldVectors(Mutant):
    """The vector index does not hear of updates and replacements."""

    caught_by = "test_a_vector_follows_its_memory"

    async def search_by_vector(self, embedding, options):
        old = self.__dict__.setdefault("old", {})
        for row in list(self._admitted(options.scope, options.filter)):
            if row.entry.id in old:
                row.entry.embedding = old[row.entry.id]
            old.setdefault(row.entry.id, row.entry.embedding)
        return await super().search_by_vector(embedding, options)


class UpdatesLoseTheVector(Mutant):
    caught_by = "test_other_changes_leave_the_vector_alone test_a_change_shows_in_every_read"

    def _update(self, scope, update):
        from lamina.ports.memory_adapter import Update

        changes = {"embedding": None, **update.changes} if "content" in update.changes else update.changes
        return super()._update(scope, Update(update.id, changes, update.expected_revision))


class TakesVectorsOfAnyLength(Mutant):
    caught_by = "test_a_vector_of_another_length_is_refused test_a_query_of_another_length_is_refused"

    def _tenant(self, scope):
        tenant = super()._tenant(scope)
        tenant.check_dimensions = lambda vector: None
        return tenant


class FindsNothingForAnotherLength(Mutant):
    caught_by = "test_a_query_of_another_length_is_refused"

    async def search_by_vector(self, embedding, options):
        try:
            return await super().search_by_vector(embedding, options)
        except EmbeddingDimensionError:
            return []


class SearchesWithAnyQuery(Mutant):
    caught_by = "test_a_query_that_is_no_vector_is_refused"

    async def search_by_vector(self, embedding, options):
        try:
            return await super().search_by_vector(embedding, options)
        except ValueError:
            return []


class OneLengthForAllTenants(Mutant):
    caught_by = "test_tenants_have_vectors_of_lengths_of_their_own"

    def _write(self, old, entry, *, is_history=True):
        for tenant in self._tenants.values():
            if entry.embedding is not None:
                tenant.check_dimensions(entry.embedding)
        super()._write(old, entry)


class RemembersTheLengthOfDroppedVectors(Mutant):
    caught_by = "test_dropped_vectors_make_way_for_others"

    async def drop_embeddings(self, scope):
        dropped = await super().drop_embeddings(scope)
        self._tenant(scope).vectors += dropped
        return dropped


class DropsOnlyLiveVectors(Mutant):
    caught_by = "test_dropped_vectors_make_way_for_others"

    async def drop_embeddings(self, scope):
        return await super().drop_embeddings(scope) - 1 if self._tenant(scope).vectors > 1 else 0


class ReportsItsHitsAsAScan(Mutant):
    caught_by = f"{EXACT} test_words_are_found_in_every_script"

    async def search_by_vector(self, embedding, options):
        return [
            SearchHit(hit.entry, hit.similarity, native=False)
            for hit in await super().search_by_vector(embedding, options)
        ]

    async def search_by_text(self, query, options):
        return [
            SearchHit(hit.entry, hit.similarity, native=False) for hit in await super().search_by_text(query, options)
        ]


class Matches(Mutant):
    """Has a measure of its own for texts."""

    def score(self, query, content):
        raise NotImplementedError

    async def search_by_text(self, query, options):
        rows = self._admitted(options.scope, options.filter)
        hits = [SearchHit(row.entry.replace(embedding=None), self.score(query, row.entry.content)) for row in rows]
        found = sorted((hit for hit in hits if hit.similarity > 0), key=lambda hit: (-hit.similarity, hit.entry.id))
        return found[: options.limit]


class SplitsAtWhiteSpace(Matches):
    caught_by = "test_words_are_found_in_every_script test_a_query_is_plain_text"

    def score(self, query, content):
        words = query.split()
        return sum(word in content.split() for word in words) / len(words) if words else 0


class LooksForSubstrings(Matches):
    caught_by = "test_what_is_not_there_is_not_found test_words_are_found_in_every_script"

    def score(self, query, content):
        words = query.lower().split()
        return sum(word in content.lower() for word in words) / len(words) if words else 0


class ReadsQueriesAsPatterns(Matches):
    caught_by = "test_a_query_is_plain_text test_a_query_without_a_word_finds_nothing"

    def score(self, query, content):
        return 1.0 if re.search(query, content) else 0


class EmptyQueriesFindEverything(Matches):
    caught_by = "test_a_query_without_a_word_finds_nothing"

    def score(self, query, content):
        terms = query_terms(query)
        return similarity(terms, [1.0] * len(terms), count_terms(index_terms(content))) if terms else 1.0


class WantsEveryWord(Matches):
    caught_by = "test_more_of_the_query_is_better"

    def score(self, query, content):
        terms = query_terms(query)
        return float(similarity(terms, [1.0] * len(terms), count_terms(index_terms(content))) == 1)


class CountsRepeats(Matches):
    caught_by = "test_words_outweigh_repeats_and_short_texts_long_ones test_more_of_the_query_is_better"

    def score(self, query, content):
        forms = [form for term in query_terms(query) for form in term.forms]
        return sum(word in forms for word in index_terms(content)) / 10


class NoWordIsRare(Matches):
    caught_by = "test_rare_words_count_more_than_common_ones test_rarity_is_that_of_the_scope"

    def score(self, query, content):
        terms = query_terms(query)
        return similarity(terms, [1.0] * len(terms), count_terms(index_terms(content)))


class RarityOfTheWholeTenant(Mutant):
    caught_by = "test_rarity_is_that_of_the_scope test_statistics_of_terms_are_exact_if_there_are_any"

    def _count_terms(self, scope, terms, now):
        return super()._count_terms(Scope(scope.tenant), terms, now)


class CountsExpiredTerms(Mutant):
    caught_by = "test_statistics_of_terms_are_exact_if_there_are_any"

    async def term_statistics(self, scope, terms, now):
        rows = [row for row in self._tenant(scope).rows.values() if scope.admits(row.entry)]
        return TermStatistics(len(rows), {term: sum(term in row.terms for row in rows) for term in terms})


class SomeWordsAreCommands(Mutant):
    caught_by = "test_words_of_the_index_itself_are_no_commands"

    async def search_by_text(self, query, options):
        return [] if query in {"optimize", "rebuild"} else await super().search_by_text(query, options)


class KeepsOldWords(Mutant):
    """The text index hears of new words, and never of the end of old ones."""

    caught_by = "test_words_follow_their_memory test_an_expected_revision_that_is_not_the_present_one_is_a_conflict"

    def _update(self, scope, update):
        words = self.__dict__.setdefault("words", {})
        words.setdefault(update.id, set()).update(index_terms(str(update.changes.get("content", ""))))
        row = self._row(scope, update.id)
        words[update.id] |= row.terms if row else set()
        return super()._update(scope, update)

    async def search_by_text(self, query, options):
        hits = await super().search_by_text(query, options)
        for id, words in self.__dict__.get("words", {}).items():
            row = self._row(options.scope, id)
            if row and id not in [hit.entry.id for hit in hits] and words & set(index_terms(query)):
                hits.append(SearchHit(row.entry, 0.1))
        return hits


class SearchesMetadataToo(Mutant):
    caught_by = "test_other_changes_leave_the_words_alone"

    async def search_by_text(self, query, options):
        hits = await super().search_by_text(query, options)
        rows = self._admitted(options.scope, MemoryFilter(now=options.filter.now))
        return hits + [SearchHit(row.entry, 0.1) for row in rows if query in row.entry.metadata]


class UpdatesLoseTheWords(Mutant):
    caught_by = "test_other_changes_leave_the_words_alone"

    async def search_by_text(self, query, options):
        hits = await super().search_by_text(query, options)
        return [hit for hit in hits if hit.entry.revision == 1 or "content" not in self.__dict__.get("seen", "")]

    async def touch(self, scope, ids, now):
        self.seen = "content"
        await super().touch(scope, ids, now)


class IndexesTheFirstMegabyte(Mutant):
    caught_by = "test_a_megabyte_of_words_is_found_by_its_last"

    async def search_by_text(self, query, options):
        hits = await super().search_by_text(query, options)
        return [hit for hit in hits if len(hit.entry.content) < 1_000_000]


class FindsNothingForTextInSilence(Mutant):
    caught_by = "test_what_is_not_declared_is_refused"
    capabilities = without(Capability.TEXT)

    async def search_by_text(self, query, options):
        return []


class FindsNothingForVectorsInSilence(Mutant):
    caught_by = "test_what_is_not_declared_is_refused"
    capabilities = without(Capability.VECTOR)

    async def search_by_vector(self, embedding, options):
        return []


def _unlimited(options):
    return SearchOptions(scope=options.scope, filter=options.filter, limit=10**6)


def _pool(options):
    return SearchOptions(
        scope=Scope(options.scope.tenant), filter=MemoryFilter(now=options.filter.now), limit=10 * options.limit
    )
