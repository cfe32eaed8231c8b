"""What says the same is shown once, and what a higher layer says holds: pure decisions on what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from lamina.context.candidates import Candidate
from lamina.context.near_duplicates import Resembling, fingerprint
from lamina.domain.closeness import cosines
from lamina.domain.context import DroppedItem, DropReason, ItemKind
from lamina.domain.memory import SHARED_LAYERS, Layer, MemoryEntry, Vector
from lamina.domain.message import Message, Role
from lamina.domain.message_size import Count
from lamina.domain.text import content_digest

__all__ = ["Joiner"]

_SPOKEN = frozenset({Role.USER, Role.ASSISTANT})
_LAYERS = tuple(Layer)


class Joiner:
    """Takes candidates in the order of their priority, and keeps those that add something.

    `near` is the least resemblance at which texts are joined, None for equal texts only. `vectors` are embeddings
    by id, compared by their cosine where `near_cosine` is given. Messages of the conversation stay
    whatever the candidates say; a candidate that repeats one is left out.
    """

    def __init__(
        self,
        *,
        now: datetime,
        count: Count,
        near: float | None,
        near_cosine: float | None = None,
        vectors: Mapping[str, Vector] | None = None,
    ) -> None:
        self._now = now
        self._count = count
        self._prints = None if near is None else Resembling(near)
        self._near_cosine = near_cosine
        self._vectors = vectors or {}
        self._by_digest: dict[str, str] = {}
        self._by_key: dict[str, list[Candidate]] = {}
        self._kept_vectors: list[tuple[str, Vector]] = []

    def join(
        self, candidates: Sequence[Candidate], messages: Sequence[Message]
    ) -> tuple[list[Candidate], list[DroppedItem]]:
        """Those that stay, in order, and the others with what stands in their place."""
        for message in messages:
            if message.role in _SPOKEN and message.text.strip():
                self._by_digest.setdefault(content_digest(message.text), message.id)
        kept: list[Candidate] = []
        dropped: list[DroppedItem] = []
        for candidate in candidates:
            verdict = self._verdict(candidate)
            if verdict is None:
                kept.append(candidate)
            else:
                reason, of = verdict
                dropped.append(candidate.dropped(reason, self._count(candidate.piece), of=of or None))
        return kept, dropped

    def _verdict(self, candidate: Candidate) -> tuple[DropReason, str | None] | None:
        """Why the candidate is left out, and for what; None if it stays, and is remembered."""
        stale = _stale(candidate.value, self._now) if isinstance(candidate.value, MemoryEntry) else None
        if stale is not None:
            return stale
        if candidate.kind is ItemKind.PREFERENCE:  # shown in its own place, beside its memory only if that says more
            return None
        digest = content_digest(candidate.content)
        if digest in self._by_digest:
            return DropReason.DUPLICATE, self._by_digest[digest]
        if (winner := self._overriding(candidate)) is not None:
            return DropReason.OVERRIDDEN, winner.id
        mark = fingerprint(candidate.content) if self._prints is not None else None
        vector = self._vectors.get(candidate.id) if self._near_cosine is not None else None
        alike = self._prints.find(mark) if self._prints is not None and mark is not None else None
        twin = alike or self._close(vector)
        if twin is not None:
            return DropReason.DUPLICATE, twin
        self._by_digest[digest] = candidate.id
        if self._prints is not None and mark is not None:
            self._prints.add(candidate.id, mark)
        if vector is not None:
            self._kept_vectors.append((candidate.id, vector))
        if candidate.key is not None:
            self._by_key.setdefault(candidate.key, []).append(candidate)
        return None

    def _overriding(self, candidate: Candidate) -> Candidate | None:
        """The memory of a higher layer and the same key: the user's own overrides all, a shared one its owner's."""
        if candidate.key is None or candidate.layer is None:
            return None
        for other in self._by_key.get(candidate.key, []):
            higher = other.layer is not None and _LAYERS.index(other.layer) < _LAYERS.index(candidate.layer)
            if higher and (other.layer not in SHARED_LAYERS or other.owner == candidate.owner):
                return other
        return None

    def _close(self, vector: Vector | None) -> str | None:
        if vector is None or self._near_cosine is None:
            return None
        closeness = cosines(vector, [other for _, other in self._kept_vectors])
        near = [id for (id, _), each in zip(self._kept_vectors, closeness, strict=True) if each >= self._near_cosine]
        return near[0] if near else None


def _stale(entry: MemoryEntry, now: datetime) -> tuple[DropReason, str | None] | None:
    if entry.superseded_by is not None:
        return DropReason.SUPERSEDED, entry.superseded_by
    if entry.valid_until is not None and entry.valid_until <= now:
        return DropReason.OUTDATED, None
    return None
