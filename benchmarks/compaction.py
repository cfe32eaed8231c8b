"""How long it takes to add a message: `python benchmarks/compaction.py FOLDER [pre-rot] [messages ...]`.

The folder holds transcripts (see `lamina.evaluation.transcripts`), whose messages are joined into one conversation of
so many messages, and added one by one to a short-term memory and to a thread of a kernel, each in an SQLite file.
Given are milliseconds for the last messages before each number: flat if the last row is like the first.
What the tiers make of each transcript is told by `lamina eval transcripts`.
"""

from __future__ import annotations

import asyncio
import sys

from lamina.evaluation.growth import DEFAULT_MARKS, joined, measure_growth
from lamina.evaluation.transcripts import load_transcript_folder


async def main(folder: str, pre_rot: int, marks: list[int]) -> None:
    messages = joined(load_transcript_folder(folder), max(marks))
    print(f"{'':10}{'messages':>10}{'tokens each':>13}{'median, ms':>12}{'mean':>10}{'unmanaged':>12}")
    for row in await measure_growth(messages, pre_rot=pre_rot, marks=marks):
        print(
            f"{row.way:10}{row.messages:10}{row.tokens_per_message:13.0f}{row.median:12.2f}{row.mean:10.2f}"
            f"{row.plain:12.2f}"
        )


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[2:]]
    asyncio.run(main(sys.argv[1], numbers[0] if numbers else 20_000, numbers[1:] or list(DEFAULT_MARKS)))
