"""Facts about the user that a model found in a conversation, and how far the user's own words bear them out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lamina.conversation.compaction import originals
from lamina.conversation.rolling import MAX_FACT_CHARS, one_line
from lamina.conversation.summarizer import MOST_FACTS, MOST_TOPICS, Summarizer, SummaryFailed, ask, texts_of
from lamina.conversation.transcript import document_text, pieces, transcript_line
from lamina.domain.lexical import index_terms, query_terms
from lamina.domain.memory import Layer, Trust
from lamina.domain.message import Message, Role, TextPart
from lamina.domain.message_size import Count
from lamina.domain.text import is_blank
from lamina.domain.thread import Thread
from lamina.errors import ProviderError
from lamina.memory.engine import MemoryEngine
from lamina.memory.inputs import MemoryInput
from lamina.ports.language_model import ChatMessage, ChatRole, LanguageModel
from lamina.ports.state_store import StateStore
from lamina.prompts import render
from lamina.settings.conversation import SummaryConfig

__all__ = ["UserFact", "extract_facts", "own_words", "store_facts", "weighed"]

_PAGE: Final = 200
"""So many messages are read from the store at once."""
RELEVANCE: Final = 0.8
TAGS: Final = ("auto", "compaction")
_MOST_ORIGINS: Final = 3
_MAX_SOURCE_CHARS: Final = 512
_GENERIC: Final = frozenset(
    "user users name named like likes prefer prefers want wants live lives work works use".split()
)
"""Words by which a model phrases a fact; they prove nothing of where it comes from."""

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "topics": {"type": "array", "items": {"type": "string"}},
        "facts": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["topics", "facts"],
}


@dataclass(frozen=True, slots=True)
class UserFact:
    """A fact, and the ids of the user's messages that bear it out best; trusted if at least half of its words do."""

    text: str
    trust: Trust
    derived_from: tuple[str, ...] = ()


def own_words(message: Message) -> str:
    """What the user typed in this message: no text of files, and nothing of anybody else."""
    if message.role is not Role.USER:
        return ""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part.text for part in message.content if isinstance(part, TextPart))


def weighed(facts: Iterable[str], messages: Sequence[Message], *, keep_foreign: bool = False) -> list[UserFact]:
    """The facts that may become memories, with what they rest on.

    One that holds a word which stands in a tool's result or a document, and not in the user's own words,
    is left out: whoever writes such texts must not write into the user's memory. With `keep_foreign` it is untrusted.
    """
    told = {message.id: set(index_terms(own_words(message))) for message in messages if own_words(message)}
    own: set[str] = set().union(*told.values())
    foreign: set[str] = set()
    for message in messages:
        foreign.update(index_terms(document_text(message)))
        if message.role is Role.TOOL:
            foreign.update(index_terms(message.text))
    found = []
    for text in dict.fromkeys(one_line(fact, MAX_FACT_CHARS) for fact in facts):
        terms = [term.forms for term in query_terms(text)]
        borne = [forms for forms in terms if not own.isdisjoint(forms)]
        telling = [forms for forms in terms if _GENERIC.isdisjoint(forms)]
        alien = [forms for forms in telling if own.isdisjoint(forms) and not foreign.isdisjoint(forms)]
        if is_blank(text) or (alien and not keep_foreign):
            continue
        share = len([forms for forms in telling if forms in borne]) / len(telling) if telling else 0.0
        ranked = sorted(told, key=lambda each: -sum(not told[each].isdisjoint(forms) for forms in borne))
        origins = [id for id in ranked if any(not told[id].isdisjoint(forms) for forms in borne)]
        is_own = share >= 0.5 and not alien  # noqa: PLR2004 - half, as the docstring says
        trust = Trust.TRUSTED if is_own else Trust.UNTRUSTED
        found.append(UserFact(text, trust, tuple(origins[:_MOST_ORIGINS])))
    return found


async def store_facts(
    memory: MemoryEngine, thread: Thread, facts: Sequence[UserFact], *, topics: Sequence[str], span: tuple[int, int]
) -> list[str]:
    """Remember the facts for the thread's owner and namespace; the ids of those that no hook vetoed.

    A thread without an owner belongs to nobody in particular: its facts go to the engine's default owner,
    and so no named owner ever sees them. A fact that is known is confirmed, not stored twice.
    """
    tags = [*TAGS, *(topic for topic in (one_line(each, 60) for each in topics) if not is_blank(topic))]
    metadata = {"source": "compaction", "thread_id": thread.id, "from_index": span[0], "to_index": span[1]}
    inputs = [
        MemoryInput(
            content=fact.text,
            layer=Layer.LONGTERM,
            owner=thread.owner,
            namespace=thread.namespace,
            relevance=RELEVANCE,
            tags=tags[: len(TAGS) + MOST_TOPICS],
            metadata=metadata,
            source=f"conversation:{thread.id}"[:_MAX_SOURCE_CHARS],
            trust=fact.trust,
            derived_from=fact.derived_from,
        )
        for fact in facts
    ]
    stored = await memory.store_many(inputs)
    return list(dict.fromkeys(id for id in stored if id is not None))


async def extract_facts(
    store: StateStore, thread: Thread, *, llm: LanguageModel, memory: MemoryEngine, summarizer: Summarizer
) -> list[str]:
    """Find and store the facts of the whole thread, page by page; the ids of the memories, each once.

    Raises:
        ProviderError: the model failed; what was found before stays stored.
    """
    ids: list[str] = []
    after = 0
    while events := await store.events(thread.ref, after=after, limit=_PAGE):
        messages = originals(events)
        after = messages[-1].index
        try:
            facts, topics = await _find_facts(llm, messages, summarizer.config, summarizer.count)
        except SummaryFailed as failure:
            raise ProviderError("The language model", str(failure)) from failure
        ids += await store_facts(memory, thread, facts, topics=topics, span=(messages[0].index, after))
    return list(dict.fromkeys(ids))


async def _find_facts(
    llm: LanguageModel, messages: Sequence[Message], config: SummaryConfig, count: Count
) -> tuple[list[UserFact], list[str]]:
    """The facts and topics in the user's own words alone, which is all that the model is shown."""
    spoken = [Message(Role.USER, own_words(each), id=each.id, index=each.index) for each in messages]
    lines = [transcript_line(message) for message in spoken if not is_blank(message.text)]
    instruction = render("thread_facts")
    facts: list[str] = []
    topics: list[str] = []
    # A page has few enough messages that no other work waits long for this.
    for piece in pieces(lines, room=config.room(count(instruction)), most=config.max_calls, count=count):
        conversation = [ChatMessage(ChatRole.SYSTEM, instruction), ChatMessage(ChatRole.USER, piece)]
        answer = await ask(llm, conversation, schema=_SCHEMA, config=config)
        facts += texts_of(answer.data or {}, "facts")[:MOST_FACTS]
        topics += texts_of(answer.data or {}, "topics")
    kept = weighed(facts, messages, keep_foreign=config.foreign_facts == "keep")
    return kept, list(dict.fromkeys(topics))[:MOST_TOPICS]
