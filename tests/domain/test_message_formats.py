from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.message import (
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
)
from lamina.domain.message_formats import from_anthropic, from_openai, to_anthropic, to_openai
from lamina.domain.message_groups import orphans
from lamina.errors import InvalidInput, InvalidType

# What agents really send --------------------------------------------------------------------------

OPENAI = {
    "plain": [
        {"role": "system", "content": "Answer in Turkish only."},
        {"role": "user", "content": "Wie spät ist es?", "name": "mira"},
        {"role": "assistant", "content": "Saat dokuz."},
    ],
    "developer": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
    "parallel calls": [
        {"role": "user", "content": "Weather in Oslo and Bergen?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
                {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": '{ "city": "Ber'}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_2", "content": "rain"},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "snow"}]},
        {"role": "assistant", "content": "Rain and snow."},
    ],
    "an answer as it came": [
        {"role": "user", "content": "How do I pick a lock?"},
        {"role": "assistant", "content": None, "refusal": "I cannot help with that.", "annotations": []},
        {"role": "user", "content": "And why?"},
        {"role": "assistant", "content": "Because.", "refusal": None, "reasoning_content": "The user asks why."},
    ],
    "pictures, sound and files": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.com/cat.png", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/4AAQ"}},
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
                {"type": "file", "file": {"file_id": "file-6F2ksmvXxt4VdoqmHRw6kL"}},
            ],
        }
    ],
    "a custom tool and what others add": [
        {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": "I run it.",
            "tool_calls": [
                {"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}},
                {
                    "id": "d",
                    "type": "function",
                    "function": {"name": "look", "arguments": "", "strict": True},
                    "index": 0,
                    "extra_content": {"google": {"thought_signature": "c2ln"}},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "total 0"},
        {"role": "tool", "tool_call_id": "d", "content": ""},
    ],
    "a refusal as a part": [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    ],
}

ANTHROPIC = {
    "plain": (
        "Answer in Turkish only.",
        [{"role": "user", "content": "Wie spät ist es?"}, {"role": "assistant", "content": "Saat dokuz."}],
    ),
    "no system": (None, [{"role": "user", "content": "Hello"}]),
    "a system in blocks, one cached": (
        [
            {"type": "text", "text": "Be brief."},
            {"type": "text", "text": "The book: ...", "cache_control": {"type": "ephemeral"}},
        ],
        [{"role": "user", "content": [{"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}}]}],
    ),
    "thoughts and parallel calls": (
        None,
        [
            {"role": "user", "content": "Weather in Oslo and Bergen?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Two cities.", "signature": "EqQBCgIYAhIM"},
                    {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3p"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo", "days": [1, 2]}},
                    {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "snow"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_2",
                        "is_error": True,
                        "content": [
                            {"type": "text", "text": "no such city"},
                            {
                                "type": "image",
                                "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
                            },
                        ],
                    },
                    {"type": "text", "text": "And tomorrow?"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "More snow."}]},
        ],
    ),
    "an empty result": (
        None,
        [
            {"role": "user", "content": "Do it."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "do", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]},
        ],
    ),
    "pictures and documents": (
        None,
        [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "url", "url": "https://example.com/cat.png"}},
                    {"type": "image", "source": {"type": "file", "file_id": "file_011"}},
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                        "title": "a.pdf",
                        "citations": {"enabled": True},
                    },
                    {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "The grass is green."},
                        "context": "a note",
                    },
                    {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
                    {"type": "search_result", "source": "https://example.com", "title": "t", "content": []},
                ],
            }
        ],
    ),
    "a server's own tool": (
        None,
        [
            {"role": "user", "content": "Search."},
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
                    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                    {"type": "text", "text": "Found.", "citations": [{"type": "web_search_result_location"}]},
                ],
            },
        ],
    ),
}


@pytest.mark.parametrize("raw", OPENAI.values(), ids=OPENAI)
def test_openai_messages_come_back_as_they_were(raw):
    before = copy.deepcopy(raw)
    assert to_openai(from_openai(raw)) == before
    assert raw == before


@pytest.mark.parametrize(("system", "raw"), ANTHROPIC.values(), ids=ANTHROPIC)
def test_anthropic_messages_come_back_as_they_were(system, raw):
    before = copy.deepcopy(raw)
    assert to_anthropic(from_anthropic(raw, system=system)) == (system, before)
    assert raw == before


@pytest.mark.parametrize(("system", "raw"), ANTHROPIC.values(), ids=ANTHROPIC)
def test_anthropic_messages_can_be_sent_to_openai(system, raw):
    sent = to_openai(from_anthropic(raw, system=system))
    assert json.dumps(sent)
    assert orphans(from_openai(sent)) == []


@pytest.mark.parametrize("raw", OPENAI.values(), ids=OPENAI)
def test_openai_messages_can_be_sent_to_anthropic(raw):
    system, sent = to_anthropic(from_openai(raw))
    assert json.dumps([system, sent])
    assert [turn["role"] for turn in sent] == (["user", "assistant"] * len(sent))[: len(sent)]


# Round trips of everything that a shape can carry --------------------------------------------------

TEXT = st.text(min_size=1, max_size=8).filter(lambda text: text.strip())
NAMES = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
EXTRA = st.dictionaries(NAMES.map("x_{}".format), st.one_of(st.none(), st.integers(), TEXT), max_size=2)
DATA = st.sampled_from(["", "QUJD", "iVBORw0KGgo="])
PARTS_OF_BOTH = st.one_of(
    st.builds(TextPart, TEXT, EXTRA),
    st.builds(ImagePart, url=NAMES.map("https://example.com/{}".format), extra=EXTRA),
    st.builds(ImagePart, data=DATA, media_type=st.sampled_from(["image/png", "image/svg+xml"]), extra=EXTRA),
    st.builds(OpaquePart, NAMES.map("of_{}".format), EXTRA),
)
OPENAI_PARTS = st.one_of(
    PARTS_OF_BOTH,
    st.builds(ImagePart, url=TEXT, detail=st.sampled_from(["low", "high", "auto"])),
    st.builds(FilePart, st.none() | NAMES, media_type=st.just("application/pdf"), data=DATA, extra=EXTRA),
)
ANTHROPIC_PARTS = st.one_of(
    PARTS_OF_BOTH,
    st.builds(FilePart, st.none() | NAMES, media_type=st.just("application/pdf"), data=DATA, extra=EXTRA),
    st.builds(FilePart, st.none() | NAMES, url=NAMES, extra=EXTRA),
    st.builds(FilePart, st.none() | NAMES, media_type=st.just("text/plain"), text=TEXT, extra=EXTRA),
    st.builds(ReasoningPart, TEXT, st.builds(dict, EXTRA, signature=TEXT)),
)

NO_NAME = st.none()


@st.composite
def turns(draw, parts, arguments, *, extra=EXTRA, name=NO_NAME):
    """What one user and one assistant say, with calls and all their results."""
    content = st.one_of(TEXT, st.lists(parts, min_size=1, max_size=3))
    said = [Message(Role.USER, draw(content), name=draw(name), extra=draw(extra))]
    ids = draw(st.lists(st.from_regex(r"c[0-9]{1,4}", fullmatch=True), max_size=3, unique=True))
    calls = [ToolCall(id, draw(NAMES), draw(arguments), draw(EXTRA)) for id in ids]
    said.append(Message(Role.ASSISTANT, draw(content), tool_calls=calls, extra=draw(extra)))
    said += [
        Message(Role.TOOL, draw(st.one_of(TEXT, st.lists(st.builds(TextPart, TEXT), min_size=1))), tool_call_id=id)
        for id in draw(st.permutations(ids))
    ]
    if ids:
        said.append(Message(Role.ASSISTANT, draw(content), extra=draw(extra)))
    return said


OBJECTS = st.dictionaries(NAMES, st.one_of(st.integers(), TEXT, st.lists(st.booleans())), max_size=2)


@given(
    st.lists(turns(OPENAI_PARTS, TEXT, name=st.none() | NAMES), max_size=2), st.lists(st.builds(Message.system, TEXT))
)
def test_what_openais_shape_carries_comes_back_the_same(spoken, system):
    messages = [*system, *(message for turn in spoken for message in turn)]
    sent = to_openai(messages)
    assert from_openai(json.loads(json.dumps(sent))) == messages


@given(
    st.lists(
        turns(ANTHROPIC_PARTS, OBJECTS.map(lambda o: json.dumps(o, ensure_ascii=False)), extra=st.just({})), max_size=2
    ),
    st.none() | st.builds(Message.system, TEXT),
)
def test_what_anthropics_shape_carries_comes_back_the_same(spoken, system):
    messages = [*([system] if system else []), *(message for turn in spoken for message in turn)]
    head, sent = to_anthropic(messages)
    # Beside a call, that shape knows text only as a block.
    carried = [
        each.replace(content=[TextPart(each.content)]) if each.tool_calls and isinstance(each.content, str) else each
        for each in messages
    ]
    assert from_anthropic(json.loads(json.dumps(sent)), system=head) == carried


ANYTHING = st.lists(
    st.one_of(
        st.builds(Message, st.sampled_from([Role.USER, Role.ASSISTANT, Role.SYSTEM]), st.sampled_from(["", " ", "a"])),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(
            lambda ids: Message.assistant("", tool_calls=[ToolCall(id, "look", "{oops") for id in ids])
        ),
        st.sampled_from("abcd").map(lambda call_id: Message.tool("found", call_id=call_id)),
    ),
    max_size=12,
)


@given(ANYTHING)
def test_whatever_was_said_anthropic_gets_alternating_roles_and_results_right_after_their_calls(messages):
    _, sent = to_anthropic(messages)
    assert [turn["role"] for turn in sent] == (["user", "assistant"] * len(sent))[: len(sent)]
    called: list[str] = []
    for turn in sent:
        assert turn["content"], "an empty message is refused"
        blocks = [] if isinstance(turn["content"], str) else turn["content"]
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if turn["role"] == "user":
            assert sorted(results) == sorted(called) or (turn is sent[-1] and set(results) < set(called))
            assert [block["type"] for block in blocks[: len(results)]] == ["tool_result"] * len(results)
        called = [block["id"] for block in blocks if block["type"] == "tool_use"]


@given(ANYTHING)
def test_whatever_was_said_openai_gets_no_orphan_result(messages):
    assert orphans(from_openai(to_openai(messages))) == []


# One thing at a time ------------------------------------------------------------------------------


def test_an_orphan_result_is_sent_to_nobody():
    messages = [Message.tool("found", call_id="gone"), Message.user("hello")]
    assert to_openai(messages) == [{"role": "user", "content": "hello"}]
    assert to_anthropic(messages) == (None, [{"role": "user", "content": "hello"}])


def test_what_one_side_says_in_a_row_is_one_message_of_anthropics():
    _, sent = to_anthropic([Message.user("one"), Message.user("two")])
    assert sent == [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]


def test_system_messages_go_apart_wherever_they_stand():
    messages = [Message.user("hello"), Message.system("be brief"), Message.system("be kind")]
    system, sent = to_anthropic(messages)
    assert system == [{"type": "text", "text": "be brief"}, {"type": "text", "text": "be kind"}]
    assert sent == [{"role": "user", "content": "hello"}]


def test_a_conversation_that_the_model_opens_gets_an_opening_of_the_user():
    _, sent = to_anthropic([Message.assistant("Good day")])
    assert [turn["role"] for turn in sent] == ["user", "assistant"]


def test_thoughts_without_a_signature_are_not_sent_as_thoughts():
    message = Message.assistant([ReasoningPart("of another model"), TextPart("Yes.")])
    assert to_anthropic([Message.user("?"), message])[1][1]["content"] == [{"type": "text", "text": "Yes."}]
    assert to_openai([message]) == [{"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}]


@pytest.mark.parametrize("arguments", ["{oops", "[1]", "7", '{"a": NaN}', "[" * 5000])
def test_arguments_that_are_no_object_are_sent_as_they_are_under_one_name(arguments):
    messages = [Message.user("?"), Message.assistant("", tool_calls=[ToolCall("c", "look", arguments)])]
    assert to_anthropic(messages)[1][1]["content"][0]["input"] == {"arguments": arguments}


def test_a_file_of_which_only_the_text_is_known_goes_to_openai_as_text():
    part = FilePart("notes.txt", text="Milk.")
    assert to_openai([Message.user([part])])[0]["content"] == [{"type": "text", "text": "notes.txt\nMilk."}]


def test_what_an_anthropic_answer_says_of_itself_is_metadata_and_not_sent_back():
    answer = {
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "text", "text": "Yes."}],
        "stop_reason": "end_turn",
    }
    (message,) = from_anthropic([answer])
    assert message.metadata == {"id": "msg_1", "stop_reason": "end_turn"}
    assert to_anthropic([Message.user("?"), message])[1][1] == {"role": "assistant", "content": answer["content"]}


def test_arguments_that_a_server_parsed_become_text_again():
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": {"city": "Tromsø"}}}
    (message,) = from_openai([{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert message.tool_calls == [ToolCall("c", "look", '{"city": "Tromsø"}')]


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ([{"content": "x"}], r"messages\[0\]\.role: is missing"),
        ([{"role": "user", "content": "x"}, {"role": "critic", "content": "x"}], r"messages\[1\]\.role: 'critic'"),
        ([{"role": "user", "content": 7}], r"messages\[0\]\.content: must be a list"),
        ([{"role": "user", "content": ["x"]}], r"messages\[0\]\.content\[0\]: must be a mapping"),
        ([{"role": "user", "content": [{"text": "x"}]}], r"messages\[0\]\.content\[0\]\.type: is missing"),
        ([{"role": "user", "content": [{"type": "text", "text": 7}]}], r"content\[0\]\.text: must be text"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], r"image_url\.url: is missing"),
        ([{"role": "user", "content": [{"type": "file", "file": "x"}]}], r"content\[0\]\.file: must be a mapping"),
        ([{"role": "tool", "content": "x"}], r"messages\[0\]\.tool_call_id: is missing"),
        ([{"role": "user", "content": "x", "name": 7}], r"messages\[0\]\.name: must be text"),
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}], r"tool_calls\[0\]\.function: must be a mapping"),
        ([{"role": "assistant", "tool_calls": [{"function": {"name": "x"}}]}], r"tool_calls\[0\]\.id: is missing"),
        ([{"role": "assistant", "tool_calls": {"id": "c"}}], r"messages\[0\]\.tool_calls: must be a list"),
        ([{7: "x"}], r"messages\[0\]: must be a mapping"),
        ("hello", "messages: must be a list"),
        ({"role": "user"}, "messages: must be a list"),
    ],
)
def test_openai_messages_of_another_shape_are_refused_by_the_name_of_the_field(raw, field):
    with pytest.raises((InvalidInput, InvalidType), match=field):
        from_openai(raw)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ([{"role": "system", "content": "x"}], r"messages\[0\]\.role: 'system'.*system goes apart"),
        ([{"role": "user", "content": None}], r"messages\[0\]\.content: must be a list"),
        ([{"role": "user", "content": [{"type": "tool_result"}]}], r"content\[0\]\.tool_use_id: is missing"),
        (
            [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "x", "input": "{}"}]}],
            r"\.input: must",
        ),
        ([{"role": "user", "content": [{"type": "image", "source": {}}]}], r"source\.type: is missing"),
        ([{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}], r"source\.data: is missing"),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [7]}]}],
            r"content\[0\]: must",
        ),
    ],
)
def test_anthropic_messages_of_another_shape_are_refused_by_the_name_of_the_field(raw, field):
    with pytest.raises((InvalidInput, InvalidType), match=field):
        from_anthropic(raw)
    with pytest.raises(InvalidType, match=r"system\[0\]: must be a mapping"):
        from_anthropic([], system=["x"])  # type: ignore[list-item]


@pytest.mark.parametrize("given", [None, 5, "hello", {"role": "user"}, ["hello"], [{"role": "user", "content": "x"}]])
def test_what_is_no_list_of_messages_is_not_written(given):
    for written in (to_openai, to_anthropic):
        with pytest.raises(InvalidType, match="messages"):
            written(given)


def test_arguments_that_no_json_can_carry_are_refused_by_their_name():
    endless = {}
    endless["a"] = endless
    for odd in ({"a": object()}, {"a": 10**5000}, endless):
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": odd}}
        with pytest.raises(InvalidInput, match=r"messages\[0\]\.tool_calls\[0\]\.function\.arguments"):
            from_openai([{"role": "assistant", "content": "", "tool_calls": [call]}])
        block = {"type": "tool_use", "id": "c", "name": "f", "input": odd}
        with pytest.raises(InvalidInput, match=r"messages\[0\]\.content\[0\]\.input"):
            from_anthropic([{"role": "assistant", "content": [block]}])
