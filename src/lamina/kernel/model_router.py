"""Which model does which task."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeAlias

from lamina import registry
from lamina.domain.validation import check_whole_number
from lamina.errors import ConfigError, InvalidInput
from lamina.ports.embedder import Embedder
from lamina.ports.language_model import LanguageModel

__all__ = ["ModelRouter", "Task"]

GivenModel: TypeAlias = LanguageModel | Callable[..., Any] | str
GivenEmbedder: TypeAlias = Embedder | Callable[[str], Any] | str


class Task(StrEnum):
    """What a language model is asked for."""

    ANSWERS = "answers"
    SUMMARIES = "summaries"
    FACTS = "facts"


class ModelRouter:
    """The language models and the embedder of a kernel.

    Args:
        complete: Answers, and does every other task that no model is given for. A `LanguageModel`; a callable, sync
            or async, that takes a list of `ChatMessage`s and returns text; or a name, as in `openai:gpt-4o`.
        embed: An `Embedder`, a callable that takes one text, or a name; without it, what the memory settings say.
        context_window: How many tokens fit into the window of the model that answers; half of it is then the budget
            of a context.
        summaries: The model that summarises threads.
        facts: The model that takes facts from what is said.

    Without `complete` there is no model: no provider is chosen because a key for it lies about.
    What the router made from a name, it closes; what it was given belongs to the caller.

    Raises:
        ConfigError: a name is unknown, or the provider cannot be made.
        InvalidType: something given is no model.
    """

    def __init__(
        self,
        complete: GivenModel | None = None,
        embed: GivenEmbedder | None = None,
        *,
        context_window: int | None = None,
        summaries: GivenModel | None = None,
        facts: GivenModel | None = None,
    ) -> None:
        if context_window is not None:
            check_whole_number("context_window", context_window, 1, 2**53)
        self.context_window = context_window
        self._owned: list[LanguageModel] = []
        given = {Task.ANSWERS: complete, Task.SUMMARIES: summaries, Task.FACTS: facts}
        self._models = {task: self.made_of(model) for task, model in given.items() if model is not None}
        self.embed = embed

    def model_for(self, task: Task | str) -> LanguageModel | None:
        """The model of this task, else the one that answers, else None.

        Raises:
            InvalidInput: there is no such task.
        """
        try:
            wanted = Task(task)
        except ValueError:
            raise InvalidInput("task", f"there is no {task!r:.60}", f"Use one of: {', '.join(Task)}.") from None
        return self._models.get(wanted) or self._models.get(Task.ANSWERS)

    async def close(self) -> None:
        """Let go of the models that were made from names. Idempotent."""
        for model in self._owned:
            await model.close()

    def has_own(self, task: Task) -> bool:
        """Whether a model was given for just this task."""
        return task in self._models

    def take_over(self, model: LanguageModel) -> None:
        """Let this model answer, and close it with the router."""
        self._models[Task.ANSWERS] = model
        self._owned.append(model)

    def made_of(self, given: GivenModel) -> LanguageModel:
        """The model that a name, a callable or an object stands for; one made from a name is closed with the router."""
        if not isinstance(given, str):
            return registry.adopt_language_model(given)
        if not given.strip():
            raise ConfigError("model", "is blank", "Name one, as in openai:gpt-4o.")
        model = registry.load_language_model(given)
        self._owned.append(model)
        return model
