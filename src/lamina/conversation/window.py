"""Which messages of a thread stay in full, which are folded into its summary, and which are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lamina.domain.message import Message, Role
from lamina.domain.message_groups import group_start, orphans
from lamina.domain.validation import check_whole_number
from lamina.errors import ConfigError, InvalidInput
from lamina.settings.conversation import ConversationConfig

__all__ = ["View", "WindowPolicy", "fold_through", "policy_of", "view"]

_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """When a thread is folded, and how much of it stays in full.

    With `fold_at` live messages, all but the last `keep` are folded into the summary; those of the role
    system neither count nor fold. `batch` lets so many gather beyond `keep` before they are folded
    together, which asks a model less often; those that wait are shown in full.
    The sliding window is (51, 50), the compaction of long threads (60, 10).

    Raises:
        ConfigError: `keep` is not below `fold_at`, or a number is out of range.
    """

    fold_at: int = 51
    keep: int = 50
    batch: int = 1

    def __post_init__(self) -> None:
        for name, least in (("fold_at", 1), ("keep", 0), ("batch", 1)):
            try:
                check_whole_number(name, getattr(self, name), least, _MOST)
            except InvalidInput as error:
                raise ConfigError(name, error.problem, error.remedy) from error
        if self.keep >= self.fold_at:
            problem = f"is {self.keep}, which is not below fold_at ({self.fold_at})"
            raise ConfigError("keep", problem, "Keep fewer messages than make a thread fold.")

    @property
    def due_at(self) -> int:
        """How many live messages make a thread fold."""
        return max(self.fold_at, self.keep + self.batch)

    @property
    def patience(self) -> int:
        """With how many live messages a tool call without a result is no longer waited for."""
        return 2 * self.due_at


def policy_of(config: ConversationConfig) -> WindowPolicy:
    """The policy that these settings describe: compaction if it is on, else the window, never beyond what is shown."""
    if config.compaction is not None and config.compacts:
        keep = config.compaction.keep_recent
        return WindowPolicy(keep + config.compaction.threshold, keep)
    keep = config.window if config.context_messages is None else min(config.window, config.context_messages)
    return WindowPolicy(keep + 1, keep, config.summarize_batch_size)


@dataclass(frozen=True, slots=True)
class View:
    """The places of the live messages that are shown, the system's first, and of those that extracts stand for."""

    shown: list[int]
    covered: list[int]


def fold_through(live: Sequence[Message], policy: WindowPolicy, *, force: bool = False) -> int:
    """How many of the live messages, from the oldest on, are to be folded now; 0 for none.

    The cut lies between atomic groups, so that at least the last `keep` messages stay, and not behind
    a tool call that may yet be answered. Forced, the number of messages does not matter, and a call
    is waited for only while no other answer of the model follows it.
    """
    speech = [place for place, message in enumerate(live) if message.role is not Role.SYSTEM]
    if len(speech) <= policy.keep or (len(speech) < policy.due_at and not force):
        return 0
    cut = speech[-policy.keep] if policy.keep else len(live)
    if force or len(speech) < policy.patience:
        cut = min(cut, next(_open_calls(live, answered=force), cut))
    cut = group_start(live, cut)
    return cut if any(place < cut for place in speech) else 0


def view(live: Sequence[Message], most: int | None) -> View:
    """The live messages that are shown: all of the role system, and the last `most` others (None: all of them).

    More than `most`, where a tool call and its result would be parted otherwise. A result whose call is
    not shown is covered and not shown, for providers refuse it.
    """
    speech = [place for place, message in enumerate(live) if message.role is not Role.SYSTEM]
    start = 0
    if most is not None and len(speech) > most:
        start = group_start(live, speech[-most])
    tail = [place for place in speech if place >= start]
    parted = orphans([live[place] for place in tail])
    unshown = {tail[each] for each in parted}
    system = [place for place, message in enumerate(live) if message.role is Role.SYSTEM]
    return View(
        shown=[*system, *(place for place in tail if place not in unshown)],
        covered=[place for place in speech if place < start or place in unshown],
    )


def _open_calls(live: Sequence[Message], *, answered: bool) -> Iterator[int]:
    """The places of messages with a call that has no result; without those that the model has spoken after."""
    waiting: dict[str, int] = {}  # by order: some providers give the same id again in a later turn
    for place, message in enumerate(live):
        if message.role is Role.TOOL and message.tool_call_id is not None:
            waiting.pop(message.tool_call_id, None)
        waiting.update((call.id, place) for call in message.tool_calls)
    last_answer = max((place for place, each in enumerate(live) if each.role is Role.ASSISTANT), default=-1)
    return (place for place in sorted(waiting.values()) if not (answered and place < last_answer))
