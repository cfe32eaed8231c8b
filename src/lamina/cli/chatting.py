"""The loop of `lamina chat`: a line, an answer, kept in a thread."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lamina.cli.context_shown import print_context
from lamina.cli.interrupts import interruptible, on_interrupt
from lamina.cli.output import console, note, printable
from lamina.cli.speaking import Speaker, tell_warnings
from lamina.domain.intent import IntentError, IntentResult, IntentStatus
from lamina.domain.message import Message, Role
from lamina.domain.thread import ThreadStatus
from lamina.errors import AskError, InvalidInput, LaminaError, ScopeError, ThreadArchivedError
from lamina.kernel.intents import new_intent_id

if TYPE_CHECKING:
    from lamina.domain.context import ComputedContext
    from lamina.kernel import Kernel

__all__ = ["Chat", "new_thread_id"]

PROMPT: Final = "> "
UNANSWERED: Final = "unanswered"
"""In the metadata of what is kept of a turn that has no whole answer: why."""
INTERRUPTED: Final = "interrupted"
_LATEST: Final = 50
"""Messages at the end of a thread among which a turn that was just kept is looked for."""
_HELP: Final = """\
/context  what the last answer was made from, and what was dropped
/help     this
/quit     leave; so does the end of the input
A line that ends with \\ goes on in the next one; one that begins with // is sent with a single /.
Ctrl-C stops an answer, and at the prompt, twice, leaves."""


class _Leave(Exception):
    """The person wants to go."""


@dataclass(slots=True)
class _Turn:
    """One line on its way: under which intent, what was said of the answer, how it ended."""

    id: str
    goal: str
    result: IntentResult | None = None


def new_thread_id() -> str:
    """`chat_` and 8 hex digits."""
    return f"chat_{secrets.token_hex(4)}"


class Chat:
    """One person's conversation in one thread."""

    def __init__(self, kernel: Kernel, *, thread_id: str, owner: str, namespace: str | None = None) -> None:
        self._kernel = kernel
        self._thread = thread_id
        self._owner = owner
        self._namespace = namespace
        self._alone = not sys.stdin.isatty()
        self._context: ComputedContext | None = None

    async def run(self) -> None:
        """Read, answer and keep, until the person leaves or the input ends.

        Raises:
            ScopeError: the thread is another owner's, or of another namespace.
            ThreadArchivedError: it is archived.
            AskError: there is no person at the other end, and a turn was not answered.
        """
        await self._check_thread()
        if not self._alone:
            with suppress(ImportError):  # line editing, where the system has it
                import readline  # noqa: F401
            self._aside(f"The thread is {self._thread}; /help tells what else there is.")
        with suppress(_Leave):
            while True:
                await self._heard(self._line())
        if not self._alone and await self._kernel.conversation.retrieve(self._thread) is not None:
            self._aside(f"`lamina chat --thread {self._thread}` goes on from here.")

    async def _heard(self, line: str) -> None:
        word = line.strip()
        if not word:
            return
        if not word.startswith("/") or word.startswith("//"):
            await self._answer(line.replace("//", "/", 1) if word.startswith("//") else line)
        elif word in {"/quit", "/exit"}:
            raise _Leave
        elif word == "/help":
            self._aside(_HELP)
        elif word == "/context":
            self._show_context()
        else:
            note(f"{word.split()[0]} is no command here; /help lists them.")

    def _line(self) -> str:
        """The next line, with those that it goes on in.

        Raises:
            _Leave: the input has ended, or Ctrl-C was pressed twice.
            KeyboardInterrupt: Ctrl-C, where nobody is there to press it twice.
        """
        lines: list[str] = []
        warned = False
        while True:
            try:
                with interruptible():
                    line = self._read("" if self._alone else PROMPT if not lines else ". ")
            except EOFError:
                if not lines:
                    raise _Leave from None
                return "\n".join(lines)
            except UnicodeDecodeError:
                if self._alone:
                    raise
                note("That was no UTF-8; nothing was sent.")
                continue
            except KeyboardInterrupt:
                if self._alone or warned:
                    raise
                lines, warned = [], True
                self._aside("\nCtrl-C again leaves.")
                continue
            if not line.endswith("\\"):
                return "\n".join([*lines, line])
            lines.append(line.removesuffix("\\"))

    def _read(self, prompt: str) -> str:
        if not self._alone:
            return input(prompt)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.removesuffix("\n")

    async def _answer(self, goal: str) -> None:
        """Answer the line. Whatever becomes of the answer, what the person said is kept."""
        turn, speaker = _Turn(new_intent_id(), goal), Speaker()
        fields: dict[str, Any] = {"id": turn.id, "goal": goal, "owner": self._owner}
        fields |= {"thread_id": self._thread, "namespace": self._namespace}
        task = asyncio.ensure_future(self._speak(turn, fields, speaker))
        with on_interrupt(task.cancel):
            try:
                await task
            except asyncio.CancelledError:
                if not task.cancelled() or _is_cancelled():
                    raise
            except InvalidInput as error:  # a line that cannot be asked, such as one of millions of characters
                if self._alone:
                    raise
                note(str(error))
                return
            except BrokenPipeError:
                await self._keep(turn, speaker.said, why=INTERRUPTED)
                raise
            speaker.end()
            await self._see_to(turn, speaker.said)

    async def _speak(self, turn: _Turn, fields: Mapping[str, Any], speaker: Speaker) -> None:
        async with aclosing(self._kernel.stream(fields)) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    speaker.say(piece)
                else:
                    turn.result = piece

    async def _see_to(self, turn: _Turn, said: str) -> None:
        """Keep what has to be kept yet, and tell what went wrong."""
        result = turn.result
        if result is not None and result.context is not None:
            self._context = result.context
        if result is not None:
            tell_warnings(result)
        if result is not None and result.status is IntentStatus.COMPLETED:
            return
        error = None if result is None else result.error
        await self._keep(turn, said, why=INTERRUPTED if error is None else error.kind)
        if error is None:
            self._aside("Stopped; what was said is kept.")
            if self._alone:
                raise KeyboardInterrupt
        elif self._alone:
            raise AskError(result, _told(error))
        else:
            note(_told(error))

    async def _keep(self, turn: _Turn, said: str, *, why: str) -> None:
        """Add the line and what was said of its answer to the thread, marked, unless they are there.

        A line that was not answered and is said again with no better luck is kept once.
        """
        conversation = self._kernel.conversation
        marks = {"intent_id": turn.id, UNANSWERED: why}
        kept = [Message.user(turn.goal).replace(metadata=marks)]
        if said.strip():
            kept.append(Message.assistant(said).replace(metadata=marks))
        try:
            thread = await conversation.create(self._thread, owner=self._owner, namespace=self._namespace)
            latest = await conversation.history(
                self._thread, owner=self._owner, offset=max(0, thread.last_index - _LATEST), limit=_LATEST
            )
            if any(message.metadata.get("intent_id") == turn.id for message in latest):
                return  # the interrupt came when all was kept
            if len(kept) == 1 and latest and _is_same(latest[-1], turn.goal):
                return
            await conversation.add_messages(self._thread, kept, owner=self._owner)
        except LaminaError as error:
            note(f"What you said could not be kept: {error}")

    async def _check_thread(self) -> None:
        thread = await self._kernel.conversation.retrieve(self._thread, owner=self._owner)
        if thread is None:
            return
        if self._namespace is not None and thread.namespace != self._namespace:
            raise ScopeError(f"The thread {self._thread!r} is of another namespace.")
        if thread.status is ThreadStatus.ARCHIVED:
            raise ThreadArchivedError(self._thread)

    def _show_context(self) -> None:
        if self._context is None:
            self._aside("Nothing was asked yet.")
        else:
            print_context(self._context)

    def _aside(self, text: str) -> None:
        """Tell the person something that is no part of the conversation."""
        console(stderr=True).print(printable(text), style="dim")


def _is_cancelled() -> bool:
    """Whether the chat itself is to end, and not only an answer."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _is_same(message: Message, goal: str) -> bool:
    return message.role is Role.USER and UNANSWERED in message.metadata and message.text.strip() == goal.strip()


def _told(error: IntentError) -> str:
    return f"That was not answered. {error}"
