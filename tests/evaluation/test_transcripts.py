from __future__ import annotations

import gzip
import json

import pytest

from lamina.domain.message import Role
from lamina.domain.message_groups import orphans
from lamina.errors import InvalidInput
from lamina.evaluation.transcripts import load_transcript_folder, load_transcripts, read_messages


def written(path, *lines):
    with gzip.open(path, "wt", encoding="utf-8") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return path


def line(id="t1", **meta):
    return json.dumps({"id": id, "meta": meta, "messages": [{"role": "user", "content": "Hello"}]})


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_file_is_read_with_ids_paths_and_its_own_name(tmp_path, name):
    written(tmp_path / name, line(top_paths=["a.py"]), line("t2"), '{"id": "t3", "meta": {}}')
    one, two = load_transcript_folder(tmp_path)
    assert (one.id, one.paths, one.collection) == ("t1", ["a.py"], "a")
    assert (two.id, two.paths) == ("t2", [])


def test_a_folder_is_read_by_name_and_a_file_may_be_given_alone(tmp_path):
    written(tmp_path / "b.jsonl", line("b"))
    written(tmp_path / "a.jsonl.gz", line("a"))
    assert [each.id for each in load_transcript_folder(tmp_path)] == ["a", "b"]
    assert [each.id for each in load_transcript_folder(str(tmp_path / "b.jsonl"))] == ["b"]


def test_a_folder_without_transcripts_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"no \.jsonl"):
        list(load_transcript_folder(tmp_path))


def test_messages_keep_their_calls_and_results():
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    messages = read_messages(
        [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "x"},
        ]
    )
    assert [message.role for message in messages] == [Role.ASSISTANT, Role.TOOL]


def test_results_without_an_id_answer_the_calls_before_them_in_order():
    calls = [{"id": id, "function": {"name": "f", "arguments": "{}"}} for id in "ab"]
    messages = read_messages(
        [
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "content": "1"},
            {"role": "tool", "content": "2"},
        ]
    )
    assert [message.tool_call_id for message in messages] == [None, "a", "b"]


def test_results_without_an_id_and_without_a_call_get_one():
    rows = [
        {"role": "user", "content": "Read it"},
        {"role": "tool", "name": "read", "content": "1"},
        {"role": "tool", "content": "2"},
    ]
    messages = read_messages(rows)
    assert [message.role for message in messages] == [Role.USER, *[Role.ASSISTANT, Role.TOOL] * 2]
    assert [call.name for message in messages for call in message.tool_calls] == ["read", "tool"]
    assert orphans(messages) == []


@pytest.mark.parametrize("line", ["{", "[]", '{"messages": [{}]}', '{"id": "t", "messages": [{"role": "robot"}]}'])
def test_a_line_that_cannot_be_read_is_named(tmp_path, line):
    with pytest.raises(InvalidInput, match="line 1"):
        list(load_transcripts(written(tmp_path / "a.jsonl", line)))
