"""Recorded conversations, to be replayed: `.jsonl` files, a conversation a line.

A line is `{id, meta: {top_paths}, messages}`; `top_paths` are the files that whoever goes on with the
conversation has to know of, where that is known.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lamina.domain.message import Message, Role
from lamina.domain.message_formats import from_openai
from lamina.errors import InvalidInput

__all__ = ["Transcript", "load_transcript_folder", "load_transcripts"]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A recorded conversation, the paths that its continuation needs, and the name of the file that it is in."""

    id: str
    messages: list[Message]
    paths: list[str] = field(default_factory=list)
    collection: str = ""


def load_transcript_folder(folder: str | Path) -> Iterator[Transcript]:
    """The transcripts of all `.jsonl` and `.jsonl.gz` files of a folder, or of one such file, by name.

    Raises:
        InvalidInput: there is no such file, or a line cannot be read.
    """
    folder = Path(folder)
    files = [folder] if folder.is_file() else sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")])
    if not files:
        problem = f"{folder} has no .jsonl or .jsonl.gz file"
        raise InvalidInput("path", problem, "Give a folder of transcripts, or one file of them.")
    for path in files:
        yield from load_transcripts(path)


def load_transcripts(path: Path) -> Iterator[Transcript]:
    """The transcripts of one file, gzipped or not; a line without `messages` is none.

    Messages have a role and a content, and may have tool calls, as OpenAI's do. A tool's message without the
    id of a call, as logs have it, is the result of the first call that is still without one; if there is
    none, of a call that is put before it.

    Raises:
        InvalidInput: a line cannot be read.
    """
    collection = path.name.partition(".")[0]
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                if row.get("messages") is not None:
                    paths = list((row.get("meta") or {}).get("top_paths") or ())
                    yield Transcript(row["id"], read_messages(row["messages"]), paths, collection)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                problem = f"line {number} of {path.name} cannot be read"
                raise InvalidInput("path", problem, "Give lines of id, meta and messages.") from error


def read_messages(rows: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The messages, every tool's result with the id of its call."""
    messages: list[Message] = []
    open_calls: list[str] = []
    for number, row in enumerate(rows):
        fields = {
            name: row[name] for name in ("role", "content", "name", "tool_calls", "tool_call_id") if row.get(name)
        }
        if fields["role"] == Role.TOOL and "tool_call_id" not in fields:
            if not open_calls:
                call = {"id": f"call_{number}", "function": {"name": row.get("name") or "tool", "arguments": "{}"}}
                messages += from_openai([{"role": "assistant", "tool_calls": [call]}])
                open_calls.append(f"call_{number}")
            fields["tool_call_id"] = open_calls[0]
        read = from_openai([fields])
        messages += read
        if fields["role"] == Role.TOOL:
            open_calls = [id for id in open_calls if id != fields["tool_call_id"]]
        else:
            open_calls = [call.id for message in read for call in message.tool_calls]
    return messages
