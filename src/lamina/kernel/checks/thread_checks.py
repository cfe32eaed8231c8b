"""Whether threads and sessions stay inside their limits, and their summaries are worth something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lamina.domain.thread import SummarySource, ThreadKind
from lamina.kernel.checks.finding import Check, Verdict, fault, fine, warn
from lamina.kernel.checks.subject import Subject, ThreadFacts
from lamina.settings.tiers import ContextThresholds

__all__ = ["THREAD_CHECKS"]

_NAMED: Final = 3
_MANY: Final = 20
_SHORT: Final = 2
_MOST: Final = 0.8


def _context_over_budget(subject: Subject) -> Verdict:
    budget = subject.config.effective_context(context_window=subject.context_window).token_budget
    over = [each for each in _threads(subject) if each.tokens > budget]
    if over:
        problem = f"{_named(over)} alone are larger than the budget of {budget:,} tokens"
        return warn(problem, "Raise context.token_budget, or keep fewer messages (conversation.window).")
    return fine(f"every thread has room in the budget of {budget:,} tokens")


def _summariser_failing(subject: Subject) -> Verdict:
    failing = [each for each in subject.kept.threads if each.failures]
    if failing:
        most = max(failing, key=lambda each: each.failures)
        problem = f"the summary of {_named(failing)} failed {most.failures} times in a row ({most.problem})"
        return warn(problem, "Mend or change the summarising model; no message is lost, and it is tried again.")
    return fine("summaries are written without failures")


def _summaries_by_rules(subject: Subject) -> Verdict:
    extracts = [each for each in subject.kept.threads if each.summary is SummarySource.EXTRACTIVE]
    if extracts:
        problem = f"the summary of {_named(extracts)} is made of extracts, not written by a model"
        return warn(problem, "Give a language model (`model`, `llm` or ModelRouter); the next folding uses it.")
    return fine("no summary is made of extracts")


def _tool_call_unanswered(subject: Subject) -> Verdict:
    waiting = [each for each in subject.kept.threads if each.unanswered]
    if waiting:
        calls = sum(each.unanswered for each in waiting)
        problem = f"{calls} tool calls of {_named(waiting)} never got a result"
        return warn(problem, "Add a message of the role tool for every call, also for one that failed.")
    return fine("every tool call has its result")


def _threads_short(subject: Subject) -> Verdict:
    threads = _threads(subject)
    short = [each for each in threads if each.last_index <= _SHORT]
    if len(threads) >= _MANY and len(short) > _MOST * len(threads):
        problem = f"{len(short)} of the {len(threads)} newest threads have at most {_SHORT} messages"
        return warn(problem, "Give all messages of one conversation the same thread id.")
    return fine("threads hold conversations")


def _session_over_threshold(subject: Subject) -> Verdict:
    limits = _limits(subject)
    over = [each for each in _tiered(subject) if each.tokens >= limits.summarize_from]
    if over:
        problem = f"{_named(over)} are at or above {limits.summarize_from:,.0f} tokens, where a summary is due"
        return warn(problem, "Call `manage_context(session_id)` and read its report, or leave management on.")
    return fine(f"every session is below {limits.summarize_from:,.0f} tokens")


def _session_over_hard_limit(subject: Subject) -> Verdict:
    limit = _limits(subject).hard_limit
    over = [each for each in _tiered(subject) if each.tokens > limit]
    if over:
        problem = f"{_named(over)} are above the hard limit of {limit:,} tokens: get_context refuses"
        return fault(problem, "Call `manage_context(session_id)`, or `get_context(session_id, max_tokens=...)`.")
    return fine(f"every session is below the hard limit of {limit:,} tokens")


def _original_unreadable(subject: Subject) -> Verdict:
    broken = [each for each in subject.kept.threads if each.unreadable]
    if broken:
        messages = sum(each.unreadable for each in broken)
        problem = f"{messages} compacted messages of {_named(broken)} hold no original any more"
        return fault(problem, "Put a backup in its place; let custom code keep `original_content`.")
    return fine("every compacted message can be restored")


def _threads(subject: Subject) -> list[ThreadFacts]:
    return [each for each in subject.kept.threads if each.kind is ThreadKind.THREAD]


def _tiered(subject: Subject) -> list[ThreadFacts]:
    """What is kept under the token tiers: sessions, and threads as well if the settings say so."""
    every = subject.config.conversation.context_engineering is not None
    return [each for each in subject.kept.threads if every or each.kind is ThreadKind.SESSION]


def _limits(subject: Subject) -> ContextThresholds:
    return subject.config.conversation.context_engineering or ContextThresholds()


def _named(threads: Sequence[ThreadFacts]) -> str:
    ids = ", ".join(repr(each.id) for each in threads[:_NAMED])
    more = f" and {len(threads) - _NAMED} others" if len(threads) > _NAMED else ""
    kinds = {each.kind for each in threads}
    word = "thread" if kinds == {ThreadKind.THREAD} else "session" if kinds == {ThreadKind.SESSION} else "conversation"
    return f"{word}{'s' if len(threads) > 1 else ''} {ids}{more}"


THREAD_CHECKS: Final = (
    Check("context-over-budget", _context_over_budget),
    Check("summariser-failing", _summariser_failing),
    Check("summaries-by-rules", _summaries_by_rules),
    Check("tool-call-unanswered", _tool_call_unanswered),
    Check("threads-short", _threads_short),
    Check("session-over-threshold", _session_over_threshold),
    Check("session-over-hard-limit", _session_over_hard_limit),
    Check("original-unreadable", _original_unreadable),
)
