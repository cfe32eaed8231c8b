"""Who makes the reduced texts of pack memories: rules, or a language model whose answers are checked."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Final, Protocol

from lamina.domain.facts import FactKind, facts_of
from lamina.domain.lexical import index_terms
from lamina.domain.pack_decay import Tier
from lamina.domain.text import clean, is_blank
from lamina.domain.token_estimate import estimate_tokens
from lamina.errors import ProviderError, ProviderUnavailable
from lamina.packs.reducing import LEAST_TOKENS, aim_of, reduced
from lamina.ports.language_model import ChatMessage, ChatRole, LanguageModel
from lamina.prompts import render
from lamina.providers.worker_threads import WorkerThreads

__all__ = ["ExtractiveReducer", "ModelReducer", "Reducer", "problem_of"]

_WORDS_PER_TOKEN: Final = 0.6
_ANSWER_TOKENS: Final = 200
"""More than the reduction should have, for models that think, or count otherwise."""
_OVER: Final = 1.25
"""Times the limit that a model's answer may have: models cannot count."""
_LEAST_KEPT: Final = {Tier.SUMMARY: 0.8, Tier.KEY_FACTS: 0.6}
"""Of the distinct names, numbers and dates that the extract has, what an answer must have at least."""
_LEAST_SHARED: Final = 0.5
"""Of an answer's words, what must stand in the text: a refusal says something else."""
_COUNTED: Final = frozenset({FactKind.NAME, FactKind.NUMBER, FactKind.DATE})
_FORMS: Final = {
    Tier.SUMMARY: "Its key points, in whole sentences.",
    Tier.KEY_FACTS: "Only the core facts, as phrases with semicolons between them, without their context.",
}
_LONG_CHARS: Final = 20_000
"""Texts beyond this are reduced in a thread, so that nobody else waits for it."""

_reading = WorkerThreads("lamina-reductions", 2)


class Reducer(Protocol):
    """Makes what a tier leaves of a text.

    It may raise anything: the memory then stays as it is until the next sweep.
    """

    @abstractmethod
    async def reduce(self, text: str, tier: Tier) -> str:
        """The text for `summary`, about 30 % of its tokens, or for `key_facts`, about 10 %; not blank, not longer."""
        ...


class ExtractiveReducer(Reducer):
    """Picks from the text, by rules alone: see `lamina.packs.reducing`."""

    async def reduce(self, text: str, tier: Tier) -> str:
        """The extract."""
        return await _reading.run(reduced, text, tier) if len(text) > _LONG_CHARS else reduced(text, tier)


class ModelReducer(Reducer):
    """Asks a language model, and takes its answer if it holds; the extract is taken in place of one that does not.

    An answer holds if it is shorter than the text and about as long as the tier allows, is made of the text's
    words, brings no number of its own, and has most of the names, numbers and dates that the extract has. So a
    reduction never keeps much less than without a model, and a model that always refuses holds nothing up.
    A text of more than `window` tokens is not shown to the model: the extract is.
    """

    def __init__(self, model: LanguageModel, *, window: int = 8_000, timeout: float = 60.0) -> None:
        self._model = model
        self._window = window
        self._timeout = timeout
        self._extracts = ExtractiveReducer()

    async def reduce(self, text: str, tier: Tier) -> str:
        """The model's answer, or the extract.

        Raises:
            ProviderError: the model failed or hung; trying again later may help.
        """
        total = estimate_tokens(text)
        extract = await self._extracts.reduce(text, tier)
        if total < LEAST_TOKENS or total > self._window or extract == text:
            return extract
        answer = clean(await self._answer(text, tier, tokens=aim_of(tier).tokens(total))).strip()
        return extract if problem_of(answer, text, tier, extract=extract) else answer

    async def _answer(self, text: str, tier: Tier, *, tokens: int) -> str:
        words = str(max(3, int(tokens * _WORDS_PER_TOKEN)))
        conversation = [
            ChatMessage(ChatRole.SYSTEM, render("pack_reduction", words=words, form=_FORMS[tier])),
            ChatMessage(ChatRole.USER, text),
        ]
        who = f"{self._model.provider}:{self._model.model}"
        try:
            async with asyncio.timeout(self._timeout):
                completion = await self._model.complete(conversation, max_tokens=2 * tokens + _ANSWER_TOKENS)
        except TimeoutError as error:
            raise ProviderUnavailable(who, f"gave nothing within {self._timeout:g} s") from error
        if not isinstance(completion.text, str):
            raise ProviderError(who, f"gave {type(completion.text).__name__} where text was expected")
        return completion.text


def problem_of(answer: str, text: str, tier: Tier, *, extract: str) -> str | None:
    """Why the answer cannot stand for the text in this tier; None if it can."""
    if is_blank(answer):
        return "is empty"
    if len(answer) >= len(text):
        return "is no shorter than the text"
    if estimate_tokens(answer) > max(_OVER * aim_of(tier).limit(estimate_tokens(text)), estimate_tokens(extract)):
        return "is longer than the tier allows"
    terms, known = set(index_terms(answer)), set(index_terms(text))
    if not terms or len(terms & known) < _LEAST_SHARED * len(terms):
        return "is not about the text"
    if any(term[0].isdecimal() and term not in known for term in terms):
        return "has a number that the text has not"
    wanted = {fact.text for fact in facts_of(extract) if fact.kind in _COUNTED}
    if sum(fact in answer for fact in wanted) < _LEAST_KEPT[tier] * len(wanted):
        return "has lost names, numbers or dates"
    return None
