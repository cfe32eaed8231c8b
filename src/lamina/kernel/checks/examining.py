"""Asks every check: of a kernel that runs, or of what settings name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final

from lamina.context.manager import ContextEngineManager
from lamina.errors import ConfigError, LaminaError, MissingExtra
from lamina.kernel.checks.document_checks import DOCUMENT_CHECKS
from lamina.kernel.checks.finding import Check, Finding
from lamina.kernel.checks.memory_checks import MEMORY_CHECKS
from lamina.kernel.checks.settings_checks import SETTINGS_CHECKS
from lamina.kernel.checks.subject import Subject
from lamina.kernel.checks.surveying import survey
from lamina.kernel.checks.thread_checks import THREAD_CHECKS
from lamina.kernel.model_router import ModelRouter, Task
from lamina.kernel.parts import KernelOptions, Parts, open_parts, router_of
from lamina.kernel.stores import database_file
from lamina.ports.clock import Clock, utc_now
from lamina.settings import EmbeddingConfig, LaminaConfig

__all__ = ["CHECKS", "examine", "examine_open"]

CHECKS: Final[tuple[Check, ...]] = (*SETTINGS_CHECKS, *MEMORY_CHECKS, *DOCUMENT_CHECKS, *THREAD_CHECKS)


async def examine(read: Callable[[], LaminaConfig], *, clock: Clock = utc_now) -> list[Finding]:
    """What the checks find in the state that settings name; `read` gives the settings, or raises why it cannot.

    Opens the stores, as a kernel would, and closes them. A database file that is not there is not made, and no
    model is contacted. Only checks that could be asked are in the answer.
    """
    try:
        config = read()
    except LaminaError as error:
        return [SETTINGS_CHECKS[0](Subject(config=LaminaConfig(), now=clock(), settings_problem=error))]
    file = database_file(config)
    config, router, problem = _usable(config)
    subject = _subject(config, router, now=clock(), file=file, model_problem=problem)
    try:
        if file is None or file.exists():
            subject = await _with_stock(subject, router, clock)
    except LaminaError as error:
        subject = replace(subject, store_problem=error)
    finally:
        await router.close()
    return _ask(subject)


async def examine_open(config: LaminaConfig, parts: Parts, router: ModelRouter, *, clock: Clock) -> list[Finding]:
    """What the checks find in a kernel that runs.

    Raises:
        AdapterError: a store failed.
    """
    subject = _subject(config, router, now=clock(), file=database_file(config))
    return _ask(replace(subject, stock=await survey(parts, config=config, clock=clock)))


def _subject(config: LaminaConfig, router: ModelRouter, **facts: Any) -> Subject:
    model = router.model_for(Task.ANSWERS)
    name = None if model is None else f"{model.provider}:{model.model}"
    return Subject(config=config, model=name, context_window=router.context_window, **facts)


def _ask(subject: Subject) -> list[Finding]:
    return [check(subject) for check in CHECKS if subject.stock is not None or not check.needs_stores]


def _usable(config: LaminaConfig) -> tuple[LaminaConfig, ModelRouter, LaminaError | None]:
    """The settings without models that cannot be made, the router, and why one could not."""
    problem: LaminaError | None = None
    try:
        router = router_of(config, None)
    except (ConfigError, MissingExtra) as error:
        router, problem = ModelRouter(), error
    llm = config.memory.llm
    if isinstance(llm, str):
        try:
            router.made_of(llm)
        except (ConfigError, MissingExtra) as error:
            config, problem = _with_memory(config, llm=None), problem or error
    return config, router, problem


async def _with_stock(subject: Subject, router: ModelRouter, clock: Clock) -> Subject:
    try:
        return await _opened(subject, router, clock)
    except (ConfigError, MissingExtra) as error:
        if subject.config.memory.embedding is None:
            raise
        # Perhaps it is the embedder that cannot be made: the stores can be looked at without one.
        without = _with_memory(subject.config, embedding=EmbeddingConfig(provider="none"))
        opened = await _opened(replace(subject, config=without), router, clock)
        return replace(opened, config=subject.config, model_problem=subject.model_problem or error)


async def _opened(subject: Subject, router: ModelRouter, clock: Clock) -> Subject:
    options = KernelOptions(
        clock=clock, emit=_ignore, router=router, engines=ContextEngineManager(tenant=subject.config.memory.tenant)
    )
    async with AsyncExitStack() as closing:
        parts = await open_parts(subject.config, options, closing)
        stock = await survey(parts, config=subject.config, clock=clock)
    return replace(subject, stock=stock)


def _ignore(_: object) -> None:
    """Nobody listens."""


def _with_memory(config: LaminaConfig, **changes: Any) -> LaminaConfig:
    return config.model_copy(update={"memory": config.memory.model_copy(update=changes)})
