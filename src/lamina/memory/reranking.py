"""Reading a recall's best candidates together with its query: what the reranker says, and what it counts for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from lamina import registry
from lamina.domain.recall import Degraded, Leg, Reason
from lamina.errors import ConfigError, InvalidInput, InvalidType, ProviderError
from lamina.memory.candidates import Candidate
from lamina.ports.reranker import Reranker, reads

__all__ = ["Rerankers", "rerank", "rerank_share"]

MOST_READ: Final = 30
SHARE_OF_QUESTION: Final = 0.25
SHARE_OF_STATEMENT: Final = 0.1
"""What the reranker counts for in the similarity of a candidate that it read. Rerankers have learned which text answers
a question; of what goes with a statement they know less than vectors do."""

_QUESTION: Final = re.compile(r"[?\uff1f\u061f]|^\W*(who|whom|whose|what|when|where|which|why|how)\b", re.IGNORECASE)

NO_RERANKER: Final = "none"


class Rerankers:
    """The reranker that the settings ask for, and those that recalls name, made when they are first needed.

    Args:
        default: A name, a `Reranker`, a callable, or None for none.

    Raises:
        ConfigError: no installed package offers the name.
        InvalidType: the thing can neither score nor be called.
    """

    def __init__(self, default: Any = None) -> None:
        self._made: dict[str, Reranker] = {}
        self._default: Reranker | None = None
        if isinstance(default, str):
            self._default = self._named(default)
        elif default is not None:
            self._default = registry.adopt_reranker(default)

    def choose(self, name: str | None) -> Reranker | None:
        """The reranker of this name; the default for None, and none for `none`.

        Raises:
            InvalidInput: there is no such reranker.
            InvalidType: the name is no text.
        """
        if name is None:
            return self._default
        if not isinstance(name, str):
            remedy = "Give a name here, and your own reranker to the settings."
            raise InvalidType("rerank", f"must be text, not {type(name).__name__}", remedy)
        try:
            return self._named(name)
        except ConfigError as error:
            raise InvalidInput("rerank", error.problem, error.remedy) from error

    async def close(self) -> None:
        """Let go of what was made. Idempotent."""
        for reranker in (*self._made.values(), self._default):
            if reranker is not None:
                await reranker.close()

    def _named(self, name: str) -> Reranker | None:
        if name == NO_RERANKER:
            return None
        if name not in self._made:
            self._made[name] = registry.load_reranker(name)
        return self._made[name]


def rerank_share(query: str) -> float:
    """The share of the reranker, in [0, 1]: larger if the query is a question."""
    return SHARE_OF_QUESTION if _QUESTION.search(query) else SHARE_OF_STATEMENT


async def rerank(reranker: Reranker, query: str, candidates: Sequence[Candidate]) -> Degraded | None:
    """Let the reranker read the best candidates, and blend what it says into their similarity.

    Returns why it said nothing, if so; then nothing has changed.
    """
    best = sorted(candidates, key=lambda each: (-each.similarity - each.support, each.view.id))[:MOST_READ]
    texts = [each.view.content for each in best]
    try:
        if texts and not reads(reranker, query, texts):
            return Degraded(Leg.RERANK, Reason.OTHER_LANGUAGE, reranker.model)
        scores = await reranker.score(query, texts) if texts else []
    except ProviderError as error:
        return Degraded(Leg.RERANK, Reason.RERANKER_FAILED, str(error))
    share = rerank_share(query)
    for candidate, score in zip(best, scores, strict=True):
        candidate.rerank = score
        candidate.similarity = (1 - share) * candidate.similarity + share * score
    return None
