"""The short way in: one object that remembers, recalls and answers, for one owner, kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

from lamina.conversation.manager import ConversationManager
from lamina.domain.intent import IntentResult, IntentStatus
from lamina.domain.memory import Layer
from lamina.domain.message import ContentPart, Message, Role
from lamina.domain.recall import RecallResult, Results
from lamina.domain.text import check_name
from lamina.domain.thread import ThreadContext
from lamina.errors import AskError, ConfigError
from lamina.kernel import Kernel, ModelRouter
from lamina.ports.language_model import LanguageModel
from lamina.settings.loading import load_config

__all__ = ["Lamina", "ThreadHandle"]


class ThreadHandle:
    """One thread of one owner; it is made with its first message."""

    def __init__(self, conversation: ConversationManager, id: str, owner: str) -> None:
        self._conversation = conversation
        self.id = check_name("id", id)
        self._owner = owner

    async def add_message(self, role: Role | str, content: str | list[ContentPart], **options: Any) -> Message:
        """Add a message; options as for `ConversationManager.add_message_to_thread`."""
        return await self._conversation.add_message_to_thread(self.id, role, content, owner=self._owner, **options)

    async def get_context(self, *, max_messages: int | None = None) -> ThreadContext:
        """The summary of what is no longer shown, and the live messages."""
        return await self._conversation.get_thread_context(self.id, owner=self._owner, max_messages=max_messages)


class Lamina:
    """Memories, threads and answers for one owner. Make it with `await Lamina.create()`; end it with `close`."""

    def __init__(self, kernel: Kernel, *, owner: str) -> None:
        self._kernel = kernel
        self.owner = check_name("owner", owner)

    @classmethod
    async def create(
        cls,
        data_dir: str | PathLike[str] | None = None,
        *,
        owner: str | None = None,
        model: ModelRouter | LanguageModel | Callable[..., Any] | Mapping[str, Any] | str | None = None,
        environ: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> Self:
        """Open it where the data are: `data_dir`, else `LAMINA_DATA_DIR`, else the project's setting, else the user's.

        Settings come from the environment and the project's and the user's files, as the command line's do;
        keywords (as of `define_config`) win. `model` names a model, or is a `ModelRouter`, a `LanguageModel`, or a
        callable that takes messages and returns text. `owner` is whose memories and threads these are, where a
        call names nobody else.

        Raises:
            ConfigError: a setting is unknown, wrong, or contradicts another.
            AdapterError: the store cannot be opened.
        """
        flags = dict(settings)
        if data_dir is not None:
            flags["data_dir"] = _folder(data_dir)
        if model is None or isinstance(model, ModelRouter):
            router = model
        elif isinstance(model, str | Mapping):
            router = None
            flags["model"] = model
        else:
            router = ModelRouter(complete=model)
        if owner is not None:
            check_name("owner", owner)
        loaded = load_config(flags, flags_from="the arguments", environ=environ)
        config = loaded.config
        if not config.ephemeral:
            kept = {"memory": loaded.memory(), "data_dir": loaded.data_dir(), "ephemeral": False}
            config = config.model_copy(update=kept)
        kernel = Kernel(config, model_router=router)
        await kernel.start()
        return cls(kernel, owner=config.memory.default_owner if owner is None else owner)

    async def remember(
        self,
        text: str,
        layer: Layer | str | None = None,
        *,
        tags: Sequence[str] = (),
        owner: str | None = None,
        **options: Any,
    ) -> str | None:
        """Store a memory, in the longterm layer unless told otherwise; its id. Options as for `MemoryEngine.store`."""
        memory = self._kernel.memory_engine
        return await memory.store(text, layer=layer, tags=tags, owner=self._whose(owner), **options)

    async def recall(self, query: str, *, owner: str | None = None, **options: Any) -> Results[RecallResult]:
        """The memories that answer the query best; options as for `MemoryEngine.recall`."""
        return await self._kernel.memory_engine.recall(query, owner=self._whose(owner), **options)

    def thread(self, id: str, *, owner: str | None = None) -> ThreadHandle:
        """The thread of this id."""
        return ThreadHandle(self._kernel.conversation, id, self._whose(owner))

    async def ask(
        self, goal: str, *, thread_id: str | None = None, owner: str | None = None, agent: str | None = None
    ) -> IntentResult:
        """An answer that knows the owner's memories, the thread and the documents that match; `.answer` is its text.

        Raises:
            AskError: the intent failed; the error's `result` is its result.
            InvalidInput: the goal is blank, or there is no such agent.
            ScopeError: the thread is another owner's.
        """
        result = await self._kernel.submit(goal=goal, owner=self._whose(owner), thread_id=thread_id, agent=agent)
        if result.status is not IntentStatus.COMPLETED:
            raise AskError(result, f"The question was not answered. {result.error}")
        return result

    def _whose(self, owner: str | None) -> str:
        """Only None is nobody else: a blank name is refused, and never read as this object's owner."""
        return self.owner if owner is None else check_name("owner", owner)

    def get_kernel(self) -> Kernel:
        """The kernel underneath."""
        return self._kernel

    async def close(self) -> None:
        """Close everything. Idempotent."""
        await self._kernel.stop()

    async def __aenter__(self) -> Self:
        """It is open already."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close everything."""
        await self.close()


def _folder(data_dir: str | PathLike[str]) -> Path:
    try:
        return Path(data_dir).expanduser()
    except (TypeError, RuntimeError) as error:  # no path at all; `~name` of nobody here
        raise ConfigError("data_dir", f"{data_dir!r:.60} names no folder", "Give a path.") from error
