"""What the token tiers make of transcripts: `python benchmarks/compaction.py <folder> [pre-rot] [messages]`.

The folder holds `.jsonl` or `.jsonl.gz` files of `{id, meta: {top_paths}, messages}`, a conversation a line. Each of
more than 16,000 tokens is replayed. Then all messages are joined into one session, up to so many, and the
time of an `add` is given for each tenth of it: it is flat if the last is like the first. The yardstick beside it
is an append of the same message to the same store without any memory around it.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from lamina.conversation.short_term_stores import InMemoryMemory
from lamina.domain.message_size import messages_tokens
from lamina.evaluation.compaction import Transcript, evaluate_transcript, load_transcripts
from lamina.providers.tokens import EstimateCounter

LEAST_TOKENS = 16_000
COLUMNS = "messages  tokens  pre-rot  tier 2  tier 3  saved  by sums.  sums.  paths 2  paths 3  restored"


def transcripts(folder: Path) -> Iterator[tuple[str, Transcript]]:
    for path in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
        for transcript in load_transcripts(path):
            yield path.name.partition(".")[0], transcript


async def replay(folder: Path, pre_rot: int) -> None:
    count = EstimateCounter().count
    by_set: dict[str, list[tuple[float, ...]]] = {}
    print(f"{'':34}{COLUMNS}")
    for name, transcript in transcripts(folder):
        if messages_tokens(transcript.messages, count) <= LEAST_TOKENS:
            continue
        f = await evaluate_transcript(transcript, pre_rot=pre_rot)
        row = (f.saved, f.saved_by_summaries, f.paths_after_tier_2, f.paths_after_tier_3, f.restored)
        by_set.setdefault(name, []).append(row)
        print(
            f"{f.id[:32]:34}{f.messages:8}{f.tokens:8}{f.pre_rot:9}{f.tokens_after_tier_2:8}{f.tokens_after_tier_3:8}"
            f"{f.saved:7.1%}{f.saved_by_summaries:10.1%}{f.summaries:7}{f.paths_after_tier_2:9.1%}"
            f"{f.paths_after_tier_3:9.1%}{f.restored:10.1%}{'  over budget' if f.over_budget else ''}"
        )
    for name, rows in by_set.items():
        means = [statistics.fmean(column) for column in zip(*rows, strict=True)]
        labels = ("saved", "by summaries", "paths after tier 2", "paths after tier 3", "restored")
        figures = ", ".join(f"{label} {mean:.1%}" for label, mean in zip(labels, means, strict=True))
        print(f"mean of {len(rows)} in {name}: {figures}")


async def growth(folder: Path, pre_rot: int, most: int) -> None:
    messages = [message for _, transcript in transcripts(folder) for message in transcript.messages][:most]
    managed = InMemoryMemory(thresholds={"pre_rot_threshold": pre_rot})
    plain = InMemoryMemory(enable_context_management=False)
    times: list[tuple[float, float]] = []
    for message in messages:
        began = time.perf_counter()
        await managed.add(message)
        between = time.perf_counter()
        await plain.add(message)
        times.append((between - began, time.perf_counter() - between))
    tenth = max(1, len(times) // 10)
    print(f"{'messages':>10}{'add, ms':>10}{'mean':>10}{'unmanaged':>12}")
    for start in range(0, len(times), tenth):
        part = times[start : start + tenth]
        medians = [1000 * statistics.median(column) for column in zip(*part, strict=True)]
        mean = 1000 * statistics.fmean(first for first, _ in part)
        print(f"{start + len(part):10}{medians[0]:10.2f}{mean:10.2f}{medians[1]:12.2f}")


def main(folder: str, pre_rot: str = "20000", most: str = "5000") -> None:
    asyncio.run(replay(Path(folder), int(pre_rot)))
    asyncio.run(growth(Path(folder), int(pre_rot), int(most)))


if __name__ == "__main__":
    main(*sys.argv[1:4])
