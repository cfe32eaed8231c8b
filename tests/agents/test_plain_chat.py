"""Messages in words, for models that know nothing else."""

from __future__ import annotations

from lamina.agents.plain_chat import to_chat
from lamina.domain.message import FilePart, ImagePart, Message, OpaquePart, ReasoningPart, TextPart, ToolCall
from lamina.ports.language_model import ChatMessage, ChatRole


def test_calls_and_results_are_told_in_words():
    chat = to_chat(
        [
            Message.user("Weather?"),
            Message.assistant("", tool_calls=[ToolCall("c1", "weather", '{"city": "Graz"}')]),
            Message.tool("sunny", call_id="c1"),
            Message.assistant("Sunny."),
        ]
    )
    assert chat == [
        ChatMessage(ChatRole.USER, "Weather?"),
        ChatMessage(ChatRole.ASSISTANT, '[called weather with {"city": "Graz"}]'),
        ChatMessage(ChatRole.USER, "[result of weather]\nsunny"),
        ChatMessage(ChatRole.ASSISTANT, "Sunny."),
    ]


def test_what_has_no_words_is_named_and_thoughts_are_left_out():
    parts = [
        TextPart("Look:"),
        ImagePart(data="AAAA"),
        FilePart(name="a.pdf"),
        FilePart(text="words"),
        OpaquePart("audio"),
        ReasoningPart("secret thought"),
    ]
    (message,) = to_chat([Message.user(parts)])
    assert message.content == "Look:\n\n[picture]\n\n[file: a.pdf]\n\nwords\n\n[audio]"


def test_neighbours_of_one_role_are_joined_but_not_system_messages():
    chat = to_chat([Message.system("a"), Message.system("b"), Message.user("c"), Message.user("d"), Message.user("")])
    assert [(each.role.value, each.content) for each in chat] == [("system", "a"), ("system", "b"), ("user", "c\n\nd")]


def test_a_message_that_says_nothing_is_left_out():
    assert to_chat([Message.assistant([ReasoningPart("hm")]), Message.user("x")]) == [ChatMessage(ChatRole.USER, "x")]
