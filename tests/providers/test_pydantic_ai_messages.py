"""Messages from and to pydantic-ai's form."""

from __future__ import annotations

import base64

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.messages import (
    TextPart as ModelText,
)

from lamina.domain.message import FilePart, ImagePart, Message, OpaquePart, ReasoningPart, Role, TextPart, ToolCall
from lamina.providers.pydantic_ai_messages import from_model_messages, to_model_messages

TALK = [
    Message.system("Be brief."),
    Message.user("Weather in Graz and Wien?"),
    Message.assistant("I look.", tool_calls=[ToolCall("c1", "weather", '{"city": "Graz"}'), ToolCall("c2", "weather")]),
    Message(Role.TOOL, "sunny", tool_call_id="c1", name="weather"),
    Message(Role.TOOL, "rain", tool_call_id="c2", name="weather"),
    Message.assistant("Sunny and rain."),
]


def test_a_conversation_with_parallel_calls_comes_back_as_it_was():
    assert from_model_messages(to_model_messages(TALK)) == TALK


def test_results_of_parallel_calls_stand_in_one_request():
    kinds = [[part.part_kind for part in message.parts] for message in to_model_messages(TALK)]
    assert kinds == [
        ["system-prompt"],
        ["user-prompt"],
        ["text", "tool-call", "tool-call"],
        ["tool-return"] * 2,
        ["text"],
    ]


def test_a_result_without_a_name_takes_that_of_its_call():
    (_, request) = to_model_messages([TALK[2], Message.tool("sunny", call_id="c1")])
    assert request.parts[0].tool_name == "weather"


def test_pictures_and_files_are_handed_on():
    data = base64.b64encode(b"picture").decode()
    message = Message.user(
        [
            TextPart("Look:"),
            ImagePart(data=data, media_type="image/png"),
            ImagePart(url="https://example.com/a.png"),
            FilePart(text="words of a file"),
            FilePart(url="https://example.com/a.pdf"),
            FilePart(data="not base64!"),
            OpaquePart("audio"),
            ReasoningPart("a thought"),
        ]
    )
    (request,) = to_model_messages([message])
    content = request.parts[0].content
    assert content == [
        "Look:",
        BinaryContent(data=b"picture", media_type="image/png"),
        ImageUrl("https://example.com/a.png"),
        "words of a file",
        DocumentUrl("https://example.com/a.pdf"),
        "[a file that cannot be read]",
        "[audio]",
    ]


def test_thoughts_are_kept_with_their_signature():
    thinking = ThinkingPart("hm", signature="s1", provider_name="anthropic")
    (message,) = from_model_messages([ModelResponse(parts=[thinking, ModelText("Yes.")])])
    assert message.content == [ReasoningPart("hm", {"signature": "s1", "provider_name": "anthropic"}), TextPart("Yes.")]


@pytest.mark.parametrize(
    ("arguments", "expected"), [(None, "{}"), ("", "{}"), ({"a": 1}, '{"a": 1}'), ("{bad", "{bad")]
)
def test_arguments_are_text_whatever_they_were(arguments, expected):
    (message,) = from_model_messages([ModelResponse(parts=[ToolCallPart("f", arguments, "c1")])])
    assert message.tool_calls == [ToolCall("c1", "f", expected)]
    assert message.content == ""


def test_other_results_and_prompts_become_text():
    request = ModelRequest(parts=[SystemPromptPart("rules"), ToolReturnPart("f", {"a": [1]}, "c1")])
    system, tool = from_model_messages([request])
    assert (system.role, system.text) == (Role.SYSTEM, "rules")
    assert (tool.role, tool.text, tool.tool_call_id, tool.name) == (Role.TOOL, '{"a":[1]}', "c1", "f")


def test_lone_surrogates_are_cleaned_on_both_ways():
    (request,) = to_model_messages([Message.user("a \ud800 b")])
    assert request.parts[0].content == "a \ufffd b"
    (message,) = from_model_messages([ModelResponse(parts=[ModelText("a \ud800 b")])])
    assert message.text == "a \ufffd b"
