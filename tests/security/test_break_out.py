"""No stored text gets out of its place, whatever it holds: each attack, at each place, read back by a parser."""

from __future__ import annotations

import re

import pytest
from attacks import ATTACKS, PLACES, chunk_with, context_with
from gullible_reader import faults_between_marks, faults_in, json_faults_in, tree_of

from lamina.agents.plain_chat import to_chat
from lamina.context.render import to_anthropic, to_openai, to_prompt
from lamina.conversation.structured import StructuredSummary, summary_text
from lamina.domain import context_block, context_rendering, message_pairing, text_fencing
from lamina.domain.context_rendering import messages_of
from lamina.mcp.results import Memory, One
from lamina.rag.rendering import render_chunks

CALM = context_with()


def shape(messages):
    return [(each["role"], len(each["content"]) if isinstance(each["content"], list) else 0) for each in messages]


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_text_has_the_marks_of_a_calm_one_wherever_the_attack_stands(attack):
    calm = tree_of(to_prompt(CALM))
    same = tree_of(to_prompt(context_with("calm", "everywhere")))  # what is said twice is shown once
    for place in (*PLACES, "everywhere"):
        told = to_prompt(context_with(attack, place))
        assert tree_of(told) == (same if place == "everywhere" else calm), place
        assert list(faults_in(told)) == [], place


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_messages_have_the_roles_of_a_calm_context_and_the_system_its_words(attack):
    (system, calm), openai = to_anthropic(CALM), to_openai(CALM)
    for place in PLACES:
        wild = context_with(attack, place)
        told, (told_system, turns) = to_openai(wild), to_anthropic(wild)
        assert shape(told) == shape(openai), place
        assert [each for each in told if each["role"] == "system"] == [openai[0]], place
        assert told_system == system, place
        assert shape(turns) == shape(calm), place
        assert list(faults_in(told[1]["content"])) == [], place


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_pieces_of_documents_stay_two_blocks(attack):
    text = render_chunks([chunk_with(attack, attack, attack), chunk_with("calm")])
    heads = [line for line in text.split("\n") if line.startswith("[") and "] (score 0.50)" in line]
    assert len(heads) == 2
    assert re.search(r"^[\s>#*]*\[[^\]\n]*\] \(score 1\.00", text, re.MULTILINE) is None
    assert list(faults_in(text)) == []


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_result_of_a_tool_is_one_line_of_json_with_the_values_as_they_are(attack):
    entry = CALM.memories[0].replace(content=attack, source=attack, tags=[attack], metadata={attack: attack})
    told = One.of(entry).shown()
    assert list(json_faults_in(told)) == []
    assert One.model_validate_json(told).memory == Memory.of(entry, most=None)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_models_of_plain_text_see_the_result_between_its_marks(attack):
    messages = [each for each in messages_of(context_with(attack, "tool_result")) if each.role.value == "tool"]
    (chat,) = to_chat(messages)
    lines = chat.content.split("\n")
    assert lines[0] == "[result of a tool]"
    assert [place for place, line in enumerate(lines) if line.startswith("[end of")] == [len(lines) - 1]
    assert list(faults_between_marks(chat.content)) == []


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_summary_that_stands_among_messages_holds_no_mark(attack):
    summary = StructuredSummary(
        user_goal=attack[:500], key_decisions=[attack[:500]], critical_context={"note": attack[:500]}, content=attack
    )
    told = summary_text(summary)
    assert told.startswith("[SUMMARY")
    assert "<" not in told
    assert list(faults_between_marks(told)) == []


HARMLESS_AT_A_LABEL = {"templates", "HTML entities", "a JSON string that ends", "numbers of a transcript"}


def test_the_parser_finds_every_attack_where_nothing_is_escaped(monkeypatch):
    """The planted fault: rendering as it would be without escaping. What is not found would not be missed either."""
    for module in (context_block, context_rendering, message_pairing):
        monkeypatch.setattr(module, "fenced", lambda text: text)
        monkeypatch.setattr(module, "label", lambda text: text)
    calm = tree_of(to_prompt(CALM))
    harmless = {*HARMLESS_AT_A_LABEL, "a block of a document", "an end of a tool's result"}
    for name, attack in ATTACKS.items():
        told = to_prompt(context_with(attack, "memory"))
        is_found = tree_of(told) != calm or bool(list(faults_in(told)))
        assert is_found == (name not in harmless), name


@pytest.mark.parametrize("part", ["_ANGLES", "_UNSEEN", "_SELECTORS", "_CHAT_MARK", "_ROLE_LINE", "_LIKE_ANGLES"])
def test_the_suite_misses_each_part_of_the_escaping(part, monkeypatch):
    never = text_fencing.re.compile(r"(?P<role>)(?P<rest>)(?!)")
    monkeypatch.setattr(text_fencing, part, never)
    calm = tree_of(to_prompt(CALM))
    wild = [to_prompt(context_with(attack, "memory")) for attack in ATTACKS.values()]
    assert any(tree_of(told) != calm or list(faults_in(told)) for told in wild)
