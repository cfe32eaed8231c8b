"""How much of the words of a query a memory holds: by its content, or because the query calls it by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from lamina.domain.lexical import Term, count_terms, index_terms, query_terms, similarity, term_weights
from lamina.domain.memory import MemoryEntry
from lamina.domain.periods import read_periods
from lamina.domain.scope import Scope
from lamina.memory.candidates import Candidate
from lamina.memory.names import forms_in, is_called, names_in
from lamina.ports.memory_adapter import MemoryAdapter, TermStatistics
from lamina.ports.memory_requests import PoolEntry

__all__ = ["Wording"]


class Wording:
    """The words of a query that is asked in a scope of a store; the store is asked about them once, if at all."""

    def __init__(self, query: str, adapter: MemoryAdapter, scope: Scope, *, now: datetime) -> None:
        self._query = query
        self.periods = read_periods(query, now)
        self._adapter = adapter
        self._scope = scope
        self._now = now
        self._known: Sequence[float] | None = None
        self._strange: list[Term] = []
        self._told: Mapping[str, float] = {}

    @cached_property
    def terms(self) -> list[Term]:
        """What is looked for: told when it is needed first, since stems in many languages take a while."""
        return query_terms(self._query)

    def learn(self, statistics: TermStatistics, similarities: Mapping[str, float]) -> None:
        """Take over what the store has told in answer to a search: statistics of the terms, and values by id."""
        self._told = similarities
        self._weigh(statistics)

    async def similarity(self, entry: MemoryEntry | PoolEntry) -> float:
        """How much of the query's words the entry holds, rare ones of the scope counting more."""
        return similarity(self.terms, await self._weights(), count_terms(index_terms(entry.content)))

    async def overlap(self, candidates: Iterable[Candidate], *, is_searched: bool) -> float:
        """How much of the query's words the best of these holds; where the keyword leg is searched, it has told."""
        if is_searched:
            return max((each.text for each in candidates if each.text is not None), default=0.0)
        return max([await self.similarity(each.view) for each in candidates], default=0.0) if self.terms else 0.0

    async def complete(self, candidates: Iterable[Candidate]) -> None:
        """Give each candidate that the keyword leg did not bring its keyword value, if there are words to look for.

        What the query calls by name holds all that it asks for.
        """
        if not self.terms:
            return
        forms = forms_in(self.terms)
        for candidate in candidates:
            if candidate.text is None:
                candidate.text = self._told.get(candidate.view.id)
            if candidate.text is None:
                candidate.text = await self.similarity(candidate.view)
            if (metadata := candidate.view.metadata) and (names := names_in(metadata)):
                await self._weights()
                if is_called(names, forms, self._strange):
                    candidate.text = 1.0

    async def _weights(self) -> Sequence[float]:
        """Of the terms, by their rarity in the scope."""
        if self._known is None:
            forms = [form for term in self.terms for form in term.forms]
            found = await self._adapter.term_statistics(self._scope, forms, self._now)
            self._weigh(TermStatistics(0, {}) if found is None else found)
        return self._known or []

    def _weigh(self, found: TermStatistics) -> None:
        counts = found.frequencies
        self._known = term_weights(self.terms, found.documents, counts)
        if found.documents:
            self._strange = [each for each in self.terms if not any(counts.get(form) for form in each.forms)]
