from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import InvalidInput, ProviderError
from lamina.ports.language_model import ChatMessage, ChatRole, Completion, Usage
from lamina.providers.structured_output import NotOfSchema, ObjectSchema, request_object

FACTS = {
    "type": "object",
    "properties": {
        "facts": {"type": "array", "items": {"$ref": "#/$defs/fact"}, "maxItems": 3},
        "score": {"type": "number"},
    },
    "required": ["facts"],
    "additionalProperties": False,
    "$defs": {"fact": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
}
ASK = [ChatMessage(ChatRole.USER, "Which facts?")]


@pytest.mark.parametrize(
    "text",
    [
        '{"facts": [{"text": "a"}]}',
        ' \n{"facts": [{"text": "a"}]}\n',
        '\ufeff{"facts": [{"text": "a"}]}',
        '```json\n{"facts": [{"text": "a"}]}\n```',
        '```\n{\n"facts": [{"text": "a"}]}\n```\n',
    ],
)
def test_one_object_is_read_bare_or_in_a_fence(text: str) -> None:
    assert ObjectSchema(FACTS).parse(text) == {"facts": [{"text": "a"}]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("Sure! Here it is.", "not JSON"),
        ('Sure: {"facts": []}', "not JSON"),
        ('{"facts": []} {"facts": []}', "not JSON"),
        ('```json\n{"facts": []}\n```\n```json\n{"facts": []}\n```', "not JSON"),
        ('{"facts": [{"text": "a"', "not JSON"),
        ('{"facts": [],}', "not JSON"),
        (r'{"facts": [{"text": "\ud8"}]}', "not JSON"),
        ('{"facts": [], "score": NaN}', "NaN"),
        ('{"facts": [], "score": -Infinity}', "Infinity"),
        ('{"facts": [], "score": 1e999}', "too large"),
        ('{"facts": [], "score": ' + "9" * 5000 + "}", "number"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "type"),
        ("null", "type"),
        ('"facts"', "type"),
        ("{}", "required"),
        ('{"facts": "none"}', r"\$\.facts does not satisfy type"),
        ('{"facts": [{"text": 7}]}', r"\$\.facts\[0\]\.text does not satisfy type"),
        ('{"facts": [], "extra": 1}', "additionalProperties"),
        (json.dumps({"facts": [{"text": "a"}] * 4}), "maxItems"),
    ],
)
def test_anything_else_is_rejected_whole_and_named(text: str, problem: str) -> None:
    with pytest.raises(NotOfSchema, match=problem):
        ObjectSchema(FACTS).parse(text)


def test_the_reason_never_quotes_the_answer() -> None:
    with pytest.raises(NotOfSchema) as caught:
        ObjectSchema(FACTS).parse('{"facts": ["my secret"]}')
    assert "secret" not in str(caught.value)


def test_lone_surrogates_and_nul_in_an_answer_are_cleaned_in_values_and_keys() -> None:
    parsed = ObjectSchema({"type": "object"}).parse(r'{"a\ud83d": ["b\udc00", {"c": "\u0000"}], "d": "\ud83d\ude00"}')
    assert parsed == {"a\ufffd": ["b\ufffd", {"c": "\ufffd"}], "d": "\U0001f600"}


@given(st.text(max_size=200))
def test_no_text_makes_the_parser_fail_in_another_way(text: str) -> None:
    with contextlib.suppress(NotOfSchema):
        ObjectSchema(FACTS).parse(text)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), max_size=3))
def test_what_satisfies_the_schema_comes_back_unchanged(texts: list[str]) -> None:
    data = {"facts": [{"text": text} for text in texts]}
    assert ObjectSchema(FACTS).parse(json.dumps(data)) == data


@pytest.mark.parametrize(
    "schema",
    [{"type": "array"}, {}, {"type": "object", "properties": 7}, {"type": "object", "required": "facts"}],
)
def test_what_is_no_schema_of_an_object_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="schema"):
        ObjectSchema(schema)


@pytest.mark.parametrize("reference", ["http://127.0.0.1:1/remote.json", "#/$defs/missing", "other.json"])
def test_a_reference_to_what_the_schema_does_not_hold_is_refused_and_never_fetched(reference: str) -> None:
    schema = ObjectSchema({"type": "object", "properties": {"a": {"$ref": reference}}})
    with pytest.raises(InvalidInput, match="refers to"):
        schema.parse('{"a": 1}')


class Model:
    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.seen: list[list[ChatMessage]] = []

    async def __call__(self, messages: Sequence[ChatMessage]) -> Completion:
        self.seen.append(list(messages))
        return Completion(self.texts.pop(0), Usage(10, 2))


async def test_the_model_is_told_what_was_wrong_and_usage_adds_up() -> None:
    model = Model("no", '{"facts": []}')
    completion = await request_object("p", model, ASK, ObjectSchema(FACTS), attempts=3)
    assert completion == Completion('{"facts": []}', Usage(20, 4), {"facts": []})
    first, second = model.seen
    assert first == ASK
    assert second[:2] == [*ASK, ChatMessage(ChatRole.ASSISTANT, "no")]
    assert "not JSON" in second[2].content
    assert "maxItems" in second[2].content


async def test_attempts_are_bounded_and_the_last_problem_is_in_the_error() -> None:
    model = Model("no", "no", '{"facts": 1}')
    with pytest.raises(ProviderError, match=r"none of 3 answers.*\$\.facts"):
        await request_object("p", model, ASK, ObjectSchema(FACTS), attempts=3)
    assert len(model.seen) == 3


async def test_a_megabyte_of_nonsense_is_not_sent_back_and_an_empty_answer_is_not_repeated() -> None:
    model = Model("x" * 1_000_000, "", '{"facts": []}')
    await request_object("p", model, ASK, ObjectSchema(FACTS), attempts=3)
    assert sum(len(message.content) for message in model.seen[1]) < 5_000
    assert [message.role for message in model.seen[2]] == [ChatRole.USER, ChatRole.USER]
