from __future__ import annotations

import base64

import pytest

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
from lamina.domain.message_size import MESSAGE_OVERHEAD, image_tokens, message_tokens, messages_tokens

PNG_800_600 = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x03\x20\0\0\x02\x58" + bytes(50)).decode()


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (1024, 1024, 1399),  # by area; 765 in tiles
        (2048, 4096, 1640),  # a long side of 1568 makes 784 x 1568; 1105 in tiles
        (512, 512, 350),  # by area; 255 in tiles
        (200, 100, 255),  # one tile; 27 by area
        (768, 3000, 1445),  # tall and narrow, 524 x 2048: two tiles by four
        (1, 100_000, 765),
        (8192, 8192, 3279),
    ],
)
def test_a_picture_costs_the_dearer_of_the_two_published_rules(width, height, tokens):
    assert image_tokens(ImagePart(url="u", width=width, height=height)) == tokens


def test_a_picture_at_low_detail_costs_the_same_whatever_its_size():
    assert image_tokens(ImagePart(url="u", width=9000, height=9000, detail="low")) == 85


def test_the_size_of_a_picture_is_read_from_its_bytes_if_it_is_not_given():
    assert image_tokens(ImagePart(data=PNG_800_600)) == image_tokens(ImagePart(url="u", width=800, height=600))


@pytest.mark.parametrize(
    "part",
    [
        ImagePart(url="u"),
        ImagePart(data="rubbish"),
        ImagePart(url="u", width=0, height=7),
        ImagePart(url="u", width=-5, height=-5),
    ],
)
def test_a_picture_of_unknown_size_counts_as_one_of_1024_by_1024(part):
    assert image_tokens(part) == 1399


def test_ten_pictures_cost_ten_times_one_and_never_by_their_bytes():
    picture = ImagePart(data=PNG_800_600 + "A" * 4_000_000)
    message = Message.user([picture] * 10)
    assert message_tokens(message, words) == 10 * image_tokens(picture) + MESSAGE_OVERHEAD


def test_a_message_costs_its_text_and_the_marks_around_it():
    assert message_tokens(Message.user("one two three"), words) == 3 + MESSAGE_OVERHEAD
    assert message_tokens(Message.user(""), words) == MESSAGE_OVERHEAD


def test_a_call_costs_its_name_and_its_arguments():
    message = Message.assistant("", tool_calls=[ToolCall("c1", "look up", '{"a": 1}'), ToolCall("c2", "look", "{}")])
    assert message_tokens(message, words) == 3 * MESSAGE_OVERHEAD + 2 + 2 + 1 + 1


def test_names_thoughts_and_what_a_provider_added_are_counted():
    plain = message_tokens(Message.assistant("one"), words)
    assert message_tokens(Message(Role.USER, "one", name="mira"), words) == plain + 1
    assert message_tokens(Message.assistant([TextPart("one"), ReasoningPart("two three")]), words) == plain + 2
    assert message_tokens(Message(Role.USER, "one", extra={"audio": {"id": "a b"}}), words) > plain + 3
    assert message_tokens(Message.assistant([TextPart("one", extra={"cache_control": "x"})]), words) > plain
    assert message_tokens(Message.assistant([OpaquePart("server_tool_use", {"input": "two three"})]), words) > 3


def test_a_file_costs_its_text_if_that_is_known():
    assert message_tokens(Message.user([FilePart("a.txt", text="one two")]), words) == 3 + MESSAGE_OVERHEAD


@pytest.mark.parametrize(("size", "tokens"), [(0, 1000), (10_000, 1000), (600_000, 12_000)])
def test_a_file_without_known_text_costs_by_its_size_and_a_page_at_least(size, tokens):
    data = base64.b64encode(bytes(size)).decode()
    assert message_tokens(Message.user([FilePart(data=data)]), words) == tokens + MESSAGE_OVERHEAD


@pytest.mark.parametrize("prefix", ["", "data:audio/wav;base64,"])
def test_bytes_in_unknown_fields_are_not_counted_as_text(prefix):
    def letters(text: str) -> int:
        return len(text)

    sound = OpaquePart("input_audio", {"input_audio": {"data": prefix + "QUJD" * 100_000, "format": "wav"}})
    assert 1000 < message_tokens(Message.user([sound]), letters) < 7000


def test_what_is_nested_without_end_is_counted_and_no_error():
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": [deep]}
    assert message_tokens(Message.user([OpaquePart("deep", deep)]), words) > 5000


def test_several_messages_cost_the_sum():
    messages = [Message.user("one two"), Message.assistant("three")]
    assert messages_tokens(messages, words) == 3 + 2 * MESSAGE_OVERHEAD
