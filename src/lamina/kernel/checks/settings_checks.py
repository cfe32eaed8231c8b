"""What can be told from the settings alone."""

from __future__ import annotations

import os
from typing import Final

from lamina.conversation.window import policy_of
from lamina.kernel.checks.finding import Check, Verdict, fault, fine, warn
from lamina.kernel.checks.subject import Subject
from lamina.providers.tokens import token_counter, vocabulary_of

__all__ = ["SETTINGS_CHECKS"]

_SMALL_WINDOW: Final = 6
_OTHERS: Final = 0o077


def _settings_invalid(subject: Subject) -> Verdict:
    if subject.settings_problem is None:
        return fine("the settings can be read")
    return fault(str(subject.settings_problem), "Correct the setting; `lamina config show` tells who said it.")


def _model_unusable(subject: Subject) -> Verdict:
    if subject.model_problem is None:
        return fine("what the settings name can be made; nobody was contacted")
    return fault(str(subject.model_problem), "Install what it needs, or name another model.")


def _no_model(subject: Subject) -> Verdict:
    if subject.model is not None:
        return fine(f"{subject.model} answers")
    threads = 0 if subject.stock is None else len(subject.stock.threads)
    if not threads:
        return fine("no language model is named; `ask` and `chat` need one")
    problem = f"no language model is named, and there are {threads} conversations: their summaries are extracts"
    return warn(problem, "Name one, as in LAMINA_MODEL=openai:gpt-4o, or pass a ModelRouter.")


def _tokens_estimated(subject: Subject) -> Verdict:
    if subject.model is None:
        return fine("tokens are estimated, as no model is named")
    if token_counter(subject.model).is_exact:
        return fine("tokens are counted with the model's vocabulary")
    if vocabulary_of(subject.model) is not None:
        problem = f"tokens of {subject.model} are estimated, as its vocabulary is not installed"
        return warn(problem, "Install the extra `tokens`.")
    problem = f"tokens of {subject.model} are estimated, as its vocabulary is not public"
    return fine(f"{problem}; the estimate is rather high")


def _auto_recall_off(subject: Subject) -> Verdict:
    config = subject.config
    context = config.effective_context(context_window=subject.context_window)
    if not context.auto_recall:
        return warn("auto_recall is off: no memory reaches an agent", "Turn it on under memory and context.")
    limits = {
        "longterm_limit": context.longterm_limit,
        "working_limit": context.working_limit,
        "session_limit": context.session_limit,
        "organizational_limit": context.organizational_limit,
    }
    closed = [name for name, limit in limits.items() if limit == 0]
    if closed:
        return warn(f"{', '.join(closed)} of context is 0: that layer is left out", "Raise it.")
    return fine("memories of all layers reach an agent")


def _window_small(subject: Subject) -> Verdict:
    keep = policy_of(subject.config.effective_conversation()).keep
    if keep < _SMALL_WINDOW:
        problem = f"only {keep} messages of a thread stay in full"
        return warn(problem, "Raise conversation.window, or keep_recent of the compaction.")
    return fine(f"{keep} messages of a thread stay in full")


def _database_open_to_others(subject: Subject) -> Verdict:
    file = subject.file
    if os.name == "nt" or file is None or not file.exists():
        return fine("there is no file whose mode could be wrong")
    mode = file.stat().st_mode & 0o777
    if mode & _OTHERS:
        return fault(f"others on this machine may reach the database (mode {mode:o})", f"Run `chmod 600 {file}`.")
    return fine(f"only you may reach the database (mode {mode:o})")


SETTINGS_CHECKS: Final = (
    Check("settings-invalid", _settings_invalid, needs_stores=False),
    Check("model-unusable", _model_unusable, needs_stores=False),
    Check("no-model", _no_model, needs_stores=False),
    Check("tokens-estimated", _tokens_estimated, needs_stores=False),
    Check("auto-recall-off", _auto_recall_off, needs_stores=False),
    Check("window-small", _window_small, needs_stores=False),
    Check("database-open-to-others", _database_open_to_others, needs_stores=False),
)
