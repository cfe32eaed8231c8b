from __future__ import annotations

import gzip
import json

import pytest

from lamina.domain.message import Message, Role
from lamina.errors import InvalidInput
from lamina.evaluation.compaction import Transcript, evaluate_transcript, load_transcripts


def rows():
    """A made-up session of an agent that reads and changes files, as a log holds it."""
    for number in range(120):
        path = f"src/part_{number % 4}/module.py"
        yield {"role": "user", "content": f"Please look at {path} for the {number}th time, the pool is too small."}
        yield {"role": "assistant", "content": f"I read {path}. It needs a change of line {number}."}
        code = "\n".join(f"{line}\tvalue_{line} = load('{path}')" for line in range(30))
        yield {"role": "tool", "name": "read_file", "content": code}


def written(path, lines):
    with gzip.open(path, "wt", encoding="utf-8") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
async def test_a_transcript_is_replayed_and_measured(tmp_path, name):
    paths = [f"src/part_{number}/module.py" for number in range(4)]
    line = json.dumps({"id": "t1", "meta": {"top_paths": paths}, "messages": list(rows())})
    (transcript,) = load_transcripts(written(tmp_path / name, [line]))
    assert transcript.paths == paths
    assert len(transcript.messages) == 4 * 120  # each result got a call
    figures = await evaluate_transcript(transcript, pre_rot=4_000)
    assert figures.pre_rot == 4_000
    assert figures.tokens > 20_000
    assert figures.saved >= 0.7
    assert figures.restored == 1.0
    assert figures.paths_after_tier_2 >= 0.9
    assert figures.paths_after_tier_3 >= 0.9
    assert figures.summaries > 1
    assert not figures.over_budget
    assert figures.tokens_after_tier_3 < figures.tokens_after_tier_2 < figures.tokens


async def test_the_threshold_is_at_most_half_of_the_transcript():
    transcript = Transcript("t", [Message.user("word " * 300) for _ in range(20)], ["no/such/path.py"])
    figures = await evaluate_transcript(transcript)
    assert figures.pre_rot == figures.tokens // 2
    assert figures.paths_after_tier_3 == 0.0


def test_messages_keep_their_calls_and_results(tmp_path):
    messages = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ]
    (transcript,) = load_transcripts(written(tmp_path / "a.jsonl", [json.dumps({"id": "t", "messages": messages})]))
    assert [message.role for message in transcript.messages] == [Role.ASSISTANT, Role.TOOL]


@pytest.mark.parametrize("line", ["{", "[]", '{"messages": [{}]}', '{"id": "t", "messages": [{"role": "robot"}]}'])
def test_a_line_that_cannot_be_read_is_named(tmp_path, line):
    with pytest.raises(InvalidInput, match="line 1"):
        list(load_transcripts(written(tmp_path / "a.jsonl", [line])))
