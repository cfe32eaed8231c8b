"""No context exceeds its budget unless it says so, whatever is in it."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.context.composing import Composer
from lamina.context.gathering import Found
from lamina.context.request import ContextRequest
from lamina.domain.context import UserProfile
from lamina.domain.context_form import Form
from lamina.domain.document import RagChunk
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.message import Message, ToolCall
from lamina.domain.message_formats import from_anthropic, from_openai
from lamina.domain.message_size import messages_tokens
from lamina.domain.thread import ThreadContext
from lamina.providers.tokens import EstimateCounter
from lamina.settings.context import ContextConfig

NOW = datetime(2026, 3, 1, tzinfo=UTC)
COUNT = EstimateCounter().count
TEXT = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=60).map(lambda text: text * 3)


@st.composite
def found(draw):
    layers = draw(st.lists(st.sampled_from(list(Layer)), max_size=12))
    memories = [
        MemoryEntry(id=f"m{place}", content=draw(TEXT), created_at=NOW, updated_at=NOW, layer=layer)
        for place, layer in enumerate(sorted(layers, key=list(Layer).index))
    ]
    chunks = [
        RagChunk(f"c{place}", draw(TEXT), "guide.md", 1 / (place + 2), "d", place, 0, 1)
        for place in range(draw(st.integers(0, 4)))
    ]
    said = [Message.user(text) for text in draw(st.lists(TEXT, max_size=3))]
    if draw(st.booleans()):
        said += [Message.assistant("", tool_calls=[ToolCall("a", "look")]), Message.tool(draw(TEXT), call_id="a")]
    conversation = ThreadContext(summary=draw(st.none() | TEXT), messages=said) if draw(st.booleans()) else None
    profile = UserProfile("admin", ["deploy"], [draw(TEXT)]) if draw(st.booleans()) else UserProfile()
    preferences = memories[:1] if draw(st.booleans()) else []
    return Found(profile, preferences, memories, chunks, [], conversation)


@settings(max_examples=150, deadline=None)
@given(
    found(), st.integers(1, 900), st.sampled_from([None, *Form]), st.booleans(), TEXT | st.just(""),
    st.sampled_from([COUNT, lambda text: 30 + len(text)]),
)  # fmt: skip
def test_no_context_exceeds_its_budget_unless_it_says_so(found, budget, form, tools, goal, count):
    request = ContextRequest(
        intent_id="i", goal=goal, owner_id="ana", token_budget=budget, form=form, system="Be brief.",
        tools=[{"name": "look"}] if tools else [],
    )  # fmt: skip
    composer = Composer(
        request=request, config=ContextConfig(), counter=EstimateCounter(), now=NOW, notice="Data.", count=count
    )
    context = composer.compose(found)
    assert context.over_budget == (context.estimated_tokens > budget)
    if context.over_budget:
        assert (context.memories, context.documents, context.user.preferences) == ([], [], {})
    beside = 4 + count('{"name": "look"}') if tools else 0
    system, messages = context.to_anthropic()
    sizes = {
        Form.PLAIN: count(context.to_prompt()),
        Form.OPENAI: messages_tokens(from_openai(context.to_openai()), count),
        Form.ANTHROPIC: messages_tokens(from_anthropic(messages, system=system), count),
    }
    rendered = max(sizes.values()) if form is None else sizes[form]
    assert context.estimated_tokens == rendered + beside == sum(context.tokens_by_source.values())
    assert min(context.tokens_by_source.values()) >= 0
    everything = len(found.memories) + len(found.documents) + len(found.preferences)
    shown = len(context.memories) + len(context.documents)
    assert everything - len(found.preferences) <= shown + len(context.dropped) <= everything
    if found.conversation is not None:
        assert context.conversation is found.conversation
