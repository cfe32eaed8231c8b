from __future__ import annotations

import json
from pathlib import Path

from lamina.conversation.structured import summary_text
from lamina.conversation.structured_summarizer import SUMMARY_KEY, summarize_by_rules
from lamina.domain.message import Message, ReasoningPart, ToolCall
from lamina.domain.thread import SummarySource, ThreadEvent
from lamina.providers.tokens import EstimateCounter

count = EstimateCounter().count
TEXTS = json.loads(Path(__file__).with_name("support_case.json").read_text(encoding="utf-8"))["texts"]


def summarize(*messages, max_tokens=400):
    events = [message if isinstance(message, ThreadEvent) else ThreadEvent(message) for message in messages]
    return summarize_by_rules(events, max_tokens=max_tokens, count=count)


def case():
    return [(Message.assistant if place % 2 else Message.user)(text) for place, text in enumerate(TEXTS)]


def test_the_goal_is_the_users_first_word_and_the_last_step_the_models_last():
    summary = summarize(*case(), Message.assistant([ReasoningPart("hidden thought")]))
    assert summary.user_goal == TEXTS[0]
    assert summary.last_step == TEXTS[9].split(" Commit")[0] + " Commit 9f31c07ab is on the branch fix/pool."
    assert summary.source is SummarySource.EXTRACTIVE
    assert "hidden thought" not in summary_text(summary)


def test_decisions_are_sentences_of_speech_that_decide():
    summary = summarize(*case(), Message.tool("error: must always fail because of it all", call_id="a"))
    assert any("We decided to raise pool_size" in each for each in summary.key_decisions)
    assert any("Marta Olsen must approve it" in each for each in summary.key_decisions)
    assert not any("must always fail" in each for each in summary.key_decisions)


def test_modified_files_are_those_that_tools_wrote_and_patches_name():
    writes = Message.assistant(
        "", tool_calls=[ToolCall("a", "write_file", '{"path": "src/new.py", "content": "see b.py"}')]
    )
    reads = Message.assistant("", tool_calls=[ToolCall("b", "read_file", '{"path": "src/read.py"}')])
    broken = Message.assistant("", tool_calls=[ToolCall("c", "edit", "{"), ToolCall("d", "edit", "[1]")])
    patch = Message.tool(
        "--- a/src/old.py\n+++ b/src/old.py\n@@ -1 +1 @@\n*** Update File: docs/plan.md\n", call_id="e"
    )
    assert summarize(writes, reads, broken, patch).modified_files == ["src/new.py", "src/old.py", "docs/plan.md"]


def test_context_is_the_union_of_the_states_with_later_values_first():
    events = [
        ThreadEvent(Message.user("a"), {"issue": "stall", "env": "test", "session_id": "s", "__x__": 1}),
        ThreadEvent(Message.user("b"), {"env": "production"}),
    ]
    assert summarize(*events).critical_context == {"issue": "stall", "env": "production"}


def test_the_files_that_results_name_most_are_known_by_number():
    listing = "\n".join(f"src/billing/pool.py:{number}: x = {number}" for number in range(40))
    summary = summarize(Message.user("look"), Message.tool(listing, call_id="a"))
    assert "src/billing/pool.py (4" in summary.content


def test_a_former_summary_is_carried_on():
    former = summarize(*case())
    shown = ThreadEvent(Message.system("x"), {SUMMARY_KEY: former.to_json()})
    later = summarize(shown, Message.user("Now something else entirely."), Message.assistant("As you wish."))
    assert later.user_goal == former.user_goal
    assert later.last_step == "As you wish."
    assert set(former.key_decisions) <= set(later.key_decisions)
    assert "Kestrel Foods" in later.content
