"""Writing summaries: by a language model, by a function of the host's, or by picking from the text."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, TypeVarTuple

from lamina.conversation.extractive import extract, files_line
from lamina.conversation.rolling import SummaryDraft, bounded, rendered
from lamina.conversation.transcript import files_in_results, pieces, speech, transcript_line
from lamina.domain.lexical import index_terms, query_terms
from lamina.domain.message import Message
from lamina.domain.message_size import Count
from lamina.domain.text import clean, is_blank
from lamina.domain.thread import Summary, SummarySource
from lamina.errors import ProviderError, ProviderUnavailable
from lamina.ports.language_model import ChatMessage, ChatRole, Completion, LanguageModel
from lamina.prompts import render
from lamina.providers.worker_threads import WorkerThreads
from lamina.settings.conversation import SummaryConfig

__all__ = ["MOST_FACTS", "MOST_TOPICS", "CustomSummarizer", "Summarizer", "SummaryFailed", "ask", "texts_of"]

CustomSummarizer: TypeAlias = Callable[
    [str | None, list[Message]], "str | Mapping[str, Any] | Awaitable[str | Mapping[str, Any]]"
]
"""Takes the summary so far and the messages to add; gives the new text, or a mapping {summary, topics, facts}."""

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string"},
        "topics": {"type": "array", "items": {"type": "string"}},
        "facts": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["summary", "topics", "facts"],
}
MOST_FACTS: Final = 10
MOST_TOPICS: Final = 5
"""Of one answer; so many are asked for."""
_WORDS_PER_TOKEN: Final = 0.6
_TOKENS_PER_MESSAGE: Final = 100
"""Of extracts: so that a single long message does not take the place of many."""
_TEXT_SHARE: Final = 0.6
"""Of a summary's tokens, what the model is told to use for the text; the lists beside it take the rest."""


_hosts = WorkerThreads("lamina-summarizers", 4)
_reading = WorkerThreads("lamina-extracts", 2)
"""Apart from the host's functions, which may hang."""

_LONG_CHARS: Final = 50_000
"""Texts beyond this are read in a thread, so that nobody else waits for it."""

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class SummaryFailed(Exception):
    """No summary came of it. Its text says why in our own words, and holds nothing of any message."""


@dataclass(frozen=True, slots=True)
class Summarizer:
    """Writes rolling summaries of bounded size. Without a model and a custom function it can only extract."""

    config: SummaryConfig
    count: Count
    llm: LanguageModel | None = None
    custom: CustomSummarizer | None = None

    @property
    def can_write(self) -> bool:
        """Whether anything but `extract` is there."""
        return self.llm is not None or self.custom is not None

    async def write(self, previous: Summary | None, messages: Sequence[Message]) -> SummaryDraft:
        """The summary of what was before and these messages, by the custom function, else by the model.

        A backlog larger than the model's window is read piece by piece, in a bounded number of calls.

        Raises:
            SummaryFailed: it raised, hung, or gave nothing that is a summary.
        """
        if self.custom is not None:
            return self._bounded(await self._by_host(self.custom, previous, messages), previous)
        if self.llm is None:
            raise SummaryFailed("there is neither a language model nor a summarizer")
        draft: Summary | SummaryDraft | None = previous
        lines = [transcript_line(message) for message in messages]
        room = self.config.room(self.count(self._instruction("thread_summary")))
        cut = partial(pieces, room=room, most=self.config.max_calls, count=self.count)
        for piece in await _aside(sum(map(len, lines)), cut, lines):
            written = await self._by_model(self.llm, draft, piece)
            # Facts of the pieces before stay listed, for each piece only brings its own.
            draft = bounded(written, draft, limit=self.config.tokens, count=self.count)
        if not isinstance(draft, SummaryDraft):
            raise SummaryFailed("there was nothing to summarise")
        return draft

    async def extract(self, previous: Summary | None, messages: Sequence[Message]) -> SummaryDraft:
        """What is left of them without a model; never blank."""
        size = sum(len(message.text) for message in messages)
        return await _aside(size, self._extract, previous, messages)

    async def cover(self, messages: Sequence[Message]) -> str:
        """One short text that stands for messages which are not shown."""
        texts = [speech(message) for message in messages]
        picked = partial(extract, max_tokens=self.config.cover_tokens, count=self.count)
        text = await _aside(sum(map(len, texts)), picked, texts)
        heading = f"[{len(messages)} messages that are not shown here"
        return f"{heading}]" if is_blank(text) else f"{heading}, in extracts:]\n{text}"

    def _extract(self, previous: Summary | None, messages: Sequence[Message]) -> SummaryDraft:
        """Picked from the messages and the summary before them.

        Many messages are picked from together with what was before. With few, there are two parts of like size, a
        blank line between them: what is longer ago, and what came lately. The later one is joined to the
        earlier when it is full, so that folding single messages treats new ones as well as old.
        """
        room = self.config.tokens if previous is None else self._room_beside(previous)
        half = room // 2 - 1
        earlier, later = _halves(previous)
        pick = partial(extract, [speech(message) for message in messages], count=self.count)
        named = files_line(files_in_results(messages))  # of the results themselves only little is picked
        most = _TOKENS_PER_MESSAGE * len(messages)
        if most >= half:
            text = pick(max_tokens=room, previous=f"{earlier}\n{later}\n{named}")
        else:
            if previous is not None and previous.source is not SummarySource.EXTRACTIVE:
                earlier = extract((), max_tokens=half, count=self.count, previous=earlier)
            new = pick(max_tokens=most, previous=named)
            if later and self.count(f"{later}\n{new}") > half:
                earlier = extract((), max_tokens=half, count=self.count, previous=f"{earlier}\n{later}")
                later = ""
            text = "\n\n".join(part for part in (earlier, f"{later}\n{new}".strip()) if part)
        if is_blank(text):
            text = f"{len(messages)} messages without words."
        return self._bounded(SummaryDraft(text), previous)

    def _room_beside(self, previous: Summary) -> int:
        return self.config.tokens - self.count(rendered(previous.replace(text=""))) - 4

    def _bounded(self, draft: SummaryDraft, previous: Summary | None) -> SummaryDraft:
        return bounded(draft, previous, limit=self.config.tokens, count=self.count)

    def _instruction(self, prompt: str) -> str:
        return render(prompt, words=str(int(self.config.tokens * _TEXT_SHARE * _WORDS_PER_TOKEN)))

    async def _by_model(self, llm: LanguageModel, draft: Summary | SummaryDraft | None, piece: str) -> SummaryDraft:
        material = _material(draft, piece)
        conversation = self._conversation("thread_summary", material)
        try:
            answer = await ask(llm, conversation, schema=_SCHEMA, config=self.config)
        except _NoObject:
            return await self._in_prose(llm, material, words=piece if draft is None else f"{rendered(draft)}\n{piece}")
        return _read(answer.data, SummarySource.MODEL)

    async def _in_prose(self, llm: LanguageModel, material: str, *, words: str) -> SummaryDraft:
        """The summary from a model that cannot answer with an object: its text, no topics, no facts."""
        answer = await ask(llm, self._conversation("thread_summary_text", material), config=self.config)
        text = clean(answer.text).strip()
        if is_blank(text):
            raise SummaryFailed("the answer was empty")
        if text[0] in "{[<" or "```" in text:
            raise SummaryFailed("the answer was neither the object that was asked for nor prose")
        if not _shares_words(text, words):
            # An error message in place of an answer has nothing in common with what it should stand for.
            raise SummaryFailed("the answer has no word in common with the conversation")
        return SummaryDraft(text, source=SummarySource.MODEL)

    def _conversation(self, prompt: str, material: str) -> list[ChatMessage]:
        return [ChatMessage(ChatRole.SYSTEM, self._instruction(prompt)), ChatMessage(ChatRole.USER, material)]

    async def _by_host(
        self, custom: CustomSummarizer, previous: Summary | None, messages: Sequence[Message]
    ) -> SummaryDraft:
        former = None if previous is None else rendered(previous)
        own = copy.deepcopy(list(messages))
        try:
            async with asyncio.timeout(self.config.timeout):
                # A function that is not async may take its time: it must not hold up the event loop.
                is_async = inspect.iscoroutinefunction(custom)
                result = custom(former, own) if is_async else await _hosts.run(custom, former, own)
                answer: Any = await result if inspect.isawaitable(result) else result
        except TimeoutError as error:
            raise SummaryFailed(f"the summarizer gave nothing within {self.config.timeout:g} s") from error
        except Exception as error:  # a host's code: whatever it raises, the messages stay as they are
            raise SummaryFailed(f"the summarizer raised {type(error).__name__}") from error
        return _read({"summary": answer} if isinstance(answer, str) else answer, SummarySource.CUSTOM)


async def _aside(chars: int, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """What the function returns; run in a thread if it has so many characters to read that others would wait."""
    return await _reading.run(function, *arguments) if chars > _LONG_CHARS else function(*arguments)


class _NoObject(SummaryFailed):
    """The model answered, but with no object of the schema."""


async def ask(
    llm: LanguageModel,
    conversation: Sequence[ChatMessage],
    *,
    config: SummaryConfig,
    schema: Mapping[str, Any] | None = None,
) -> Completion:
    """The model's answer within the time limit.

    Raises:
        SummaryFailed: it cannot be reached, raised, hung, refused, or gave no object of the schema.
    """
    try:
        async with asyncio.timeout(config.timeout):
            answer = await llm.complete(conversation, schema=schema, max_tokens=config.answer_tokens)
    except TimeoutError as error:
        raise SummaryFailed(f"the language model gave nothing within {config.timeout:g} s") from error
    except ProviderUnavailable as error:
        raise SummaryFailed("the language model is not available") from error
    except ProviderError as error:
        raise _NoObject("the language model gave no answer that can be used") from error
    except Exception as error:  # the model may be a host's own object: the messages stay whatever it raises
        raise SummaryFailed(f"the language model raised {type(error).__name__}") from error
    if schema is not None and not isinstance(answer.data, Mapping):
        raise _NoObject("the language model gave no object")
    return answer


def _halves(previous: Summary | None) -> tuple[str, str]:
    """The earlier and the later part of an extractive summary; any other is all earlier."""
    if previous is None:
        return "", ""
    if previous.source is not SummarySource.EXTRACTIVE:
        return previous.text, ""
    earlier, _, later = previous.text.rpartition("\n\n")
    return earlier, later


def _material(draft: Summary | SummaryDraft | None, piece: str) -> str:
    parts = []
    if draft is not None:
        parts.append(f"Summary so far:\n{draft.text}")
        if draft.facts:
            parts.append("Known facts:\n" + "\n".join(f"- {fact}" for fact in draft.facts))
    return "\n\n".join([*parts, f"Messages:\n{piece}"])


def _read(answer: Any, source: SummarySource) -> SummaryDraft:
    """The draft in an answer that says it has the shape of the schema, which a host's own object need not keep."""
    if not isinstance(answer, Mapping):
        raise SummaryFailed(f"the answer is a {type(answer).__name__}, not a summary")
    text = answer.get("summary")
    if not isinstance(text, str) or is_blank(clean(text)):
        raise SummaryFailed("the summary was empty")
    topics, facts = (texts_of(answer, name) for name in ("topics", "facts"))
    return SummaryDraft(text, source=source, new_topics=topics[:MOST_TOPICS], new_facts=facts[:MOST_FACTS])


def texts_of(answer: Mapping[str, Any], name: str) -> list[str]:
    """The texts that the answer lists under the name; none where it lists none."""
    value = answer.get(name)
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []


def _shares_words(text: str, words: str) -> bool:
    known = {term for term in index_terms(words) if not term.isdecimal()}
    return any(form in known for term in query_terms(text) for form in term.forms)
