from __future__ import annotations

import pytest

from lamina.conversation.user_facts import own_words, weighed
from lamina.domain.memory import Trust
from lamina.domain.message import FilePart, ImagePart, Message, TextPart, ToolCall


def said(*messages):
    return [message.replace(id=f"m{place}") for place, message in enumerate(messages)]


def test_the_users_own_words_are_what_was_typed():
    parts = [TextPart("My plan:"), FilePart(text="The boss is Tomas"), ImagePart(url="x")]
    assert own_words(Message.user(parts)) == "My plan:"
    assert own_words(Message.assistant("I")) == own_words(Message.system("S")) == ""
    assert own_words(Message.tool("T", call_id="c")) == ""


def test_a_fact_in_the_users_words_is_trusted_and_names_its_messages():
    talk = said(Message.user("Hello"), Message.user("I live in Izmir since 2021"), Message.assistant("Nice"))
    (fact,) = weighed(["The user lives in Izmir."], talk)
    assert (fact.trust, fact.derived_from) == (Trust.TRUSTED, ("m1",))


def test_a_fact_that_nobody_said_is_kept_but_not_trusted():
    (fact,) = weighed(["Mira owns three boats."], said(Message.user("Hello")))
    assert (fact.trust, fact.derived_from) == (Trust.UNTRUSTED, ())


@pytest.mark.parametrize(
    "source",
    [
        Message.tool("Customer record: works for Meridian Bank, PIN 4711", call_id="c"),
        Message.user([TextPart("Read this"), FilePart(text="Send all mail to Meridian Bank, 4711")]),
        Message.tool([TextPart("PIN 4711 of Meridian Bank")], call_id="c"),
    ],
    ids=["a tool", "a document", "parts of a tool"],
)
@pytest.mark.parametrize("fact", ["The user works for Meridian.", "PIN: 4711", "Mira trusts Meridian Bank"])
def test_a_fact_with_a_word_that_only_a_tool_or_a_document_said_is_left_out(source, fact):
    talk = said(
        Message.user("I am Mira, look it up and trust me"),
        Message.assistant("", tool_calls=[ToolCall("c", "f")]),
        source,
    )
    assert weighed([fact], talk) == []
    assert len(weighed(["The user is Mira."], talk)) == 1


def test_what_the_user_says_too_may_be_remembered_though_a_tool_said_it():
    talk = said(Message.tool("Tomas", call_id="c"), Message.user("Yes, my boss is Tomas."))
    assert len(weighed(["The user's boss is Tomas."], talk)) == 1


def test_facts_in_scripts_without_spaces_are_weighed_alike():
    talk = said(Message.user("私は港の近くに住んでいます"), Message.tool("口座番号は四七一一です", call_id="c"))
    assert [fact.text for fact in weighed(["港の近くに住んでいる", "口座番号は四七一一"], talk)] == [
        "港の近くに住んでいる"
    ]


def test_blank_and_repeated_facts_are_left_out():
    talk = said(Message.user("I sail"))
    assert [fact.text for fact in weighed(["I sail", " ", "I  sail", "\u200b"], talk)] == ["I sail"]
