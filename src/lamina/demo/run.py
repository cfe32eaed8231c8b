"""The demo's steps: remember, ask, keep owners apart, open again, compute a context, and count honestly."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from lamina.demo.intent import ContextReport, compute_for_intent
from lamina.demo.show import show_answer, show_question, show_step
from lamina.demo.texts import Question, Turn, load_questions, load_turns
from lamina.domain.recall import RecallResult
from lamina.errors import InvalidInput
from lamina.memory.engine import MemoryEngine
from lamina.memory.factory import create_memory_engine

__all__ = ["DemoReport", "demo", "run_demo"]

TOP: Final = 3
_STRANGERS_DEPTH: Final = 50


@dataclass(frozen=True, slots=True)
class DemoReport:
    """What the demo saw.

    `missed` holds the questions whose expected memory was not among the first three, `leaked` the
    ids that an owner saw of another's personal memories, `reopened` whether the file gave the same
    answer after it was closed and opened again, `context` what an intent was given.
    """

    memories: int
    questions: int
    missed: tuple[str, ...]
    leaked: tuple[str, ...]
    reopened: bool
    context: ContextReport
    seconds: float

    @property
    def found(self) -> int:
        """How many questions had their expected memory among the first three."""
        return self.questions - len(self.missed)

    @property
    def as_expected(self) -> bool:
        """Whether everything that the demo shows held."""
        return not self.missed and not self.leaked and self.reopened and self.context.as_expected

    def __str__(self) -> str:
        apart = "owners apart" if not self.leaked else f"{len(self.leaked)} memories leaked"
        kept = "the reopened file gives the same answer" if self.reopened else "the reopened file answers differently"
        return (
            f"{self.memories} memories, {self.found} of {self.questions} questions with the expected memory "
            f"in the top {TOP}, {apart}, {kept}, {self.context}{self._not_as_expected()}, {self.seconds:.1f} s"
        )

    def _not_as_expected(self) -> str:
        context = self.context
        return "" if context.as_expected else f" ({len(context.missing)} missing, {len(context.leaked)} leaked)"


def run_demo(console: Console | None = None, *, path: Path | str | None = None) -> int:
    """Run the demo from synchronous code.

    Returns:
        The exit status: 0 if everything it shows held, else 1.
    """
    report = asyncio.run(demo(console, path=path))
    return 0 if report.as_expected else 1


async def demo(
    console: Console | None = None, *, path: Path | str | None = None, environ: Mapping[str, str] | None = None
) -> DemoReport:
    """Show what a memory is good for, on a database file of its own.

    The file is a temporary one, unless `path` names a new file to keep. A language model that the settings name
    is asked once, at the end; `environ` takes the place of the process's environment for these.

    Raises:
        InvalidInput: there is something at `path` already; the demo does not write into your memories.
    """
    console = console or Console()
    if path is None:
        with tempfile.TemporaryDirectory(prefix="lamina-demo-") as folder:
            return await _tour(console, Path(folder) / "lamina.db", environ)
    return await _tour(console, _new_file(Path(path)), environ)


def _new_file(path: Path) -> Path:
    if path.exists():
        raise InvalidInput("path", f"{str(path)!r} exists already", "Name a new file for the demo.")
    return path


async def _tour(console: Console, path: Path, environ: Mapping[str, str] | None) -> DemoReport:
    began = time.perf_counter()
    turns, questions = load_turns(), load_questions()
    async with await create_memory_engine(provider="sqlite", path=path) as engine:
        stored = await _remember(console, engine, turns)
        missed = await _ask(console, engine, questions)
        leaked = await _keep_apart(console, engine, questions)
        before = await _first(engine, questions[0])
    async with await create_memory_engine(provider="sqlite", path=path) as engine:
        after = await _first(engine, questions[0])
    show_step(console, "Closed and opened again", f"{questions[0].question}\n{after.entry.content}")
    context = await compute_for_intent(console, path, environ=environ)
    report = DemoReport(
        memories=stored,
        questions=len(questions),
        missed=tuple(missed),
        leaked=tuple(leaked),
        reopened=before.entry.content == after.entry.content,
        context=context,
        seconds=time.perf_counter() - began,
    )
    show_step(console, "Summary")
    console.print(str(report), highlight=False, soft_wrap=True)
    return report


async def _remember(console: Console, engine: MemoryEngine, turns: list[Turn]) -> int:
    began = time.perf_counter()
    ids = await engine.store_many([turn.as_item() for turn in turns])
    owners = ", ".join(dict.fromkeys(turn.owner for turn in turns))
    stored = sum(id is not None for id in ids)
    text = f"{stored} memories of {owners}, in one batch, in {time.perf_counter() - began:.2f} s."
    show_step(console, "Remember", text)
    return stored


async def _ask(console: Console, engine: MemoryEngine, questions: list[Question]) -> list[str]:
    legend = (
        f"The best {TOP} of each; ✓ is the expected memory, ↩ one that it overtook. All were stored just now, as after "
        "an import, so recency is near 1 for each; frequency grows with every question that brings a memory up."
    )
    show_step(console, "Ask", legend)
    missed = []
    for number, question in enumerate(questions, 1):
        results = await engine.recall(question.question, owner=question.owner, limit=TOP)
        show_question(console, number, question)
        show_answer(console, results, question)
        if question.expected not in {result.entry.id for result in results}:
            missed.append(question.question)
            console.print(f"  The expected memory {question.expected} is not among them.", style="red")
    return missed


async def _keep_apart(console: Console, engine: MemoryEngine, questions: list[Question]) -> list[str]:
    """Ask every question as somebody else, and return the personal memories of the first owner that came."""
    leaked, shown = [], ""
    for question in questions:
        stranger = "tomas" if question.owner == "mira" else "mira"
        results = await engine.recall(question.question, owner=stranger, limit=_STRANGERS_DEPTH, touch=False)
        leaked += [result.entry.id for result in results if result.entry.owner == question.owner]
        best = results[0].entry.content if results else "nothing at all"
        shown = shown or f"{question.question} As {stranger}, the best is:\n{best}"
    text = f"{shown}\n\nAll {len(questions)} asked so: {len(leaked)} of the first owner's personal memories came up."
    show_step(console, "Keep owners apart", text)
    return leaked


async def _first(engine: MemoryEngine, question: Question) -> RecallResult:
    return (await engine.recall(question.question, owner=question.owner, limit=1, touch=False))[0]
