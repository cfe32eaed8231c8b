"""Every other provider's models, through pydantic-ai: `provider:model`, as it names them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from lamina.domain.memory import Vector
from lamina.domain.text import clean
from lamina.errors import ConfigError, InvalidInput, MissingExtra, ProviderError, ProviderUnavailable
from lamina.ports.language_model import ChatMessage, ChatRole, Completion, Usage
from lamina.providers.structured_output import NotOfSchema, ObjectSchema, cleaned
from lamina.providers.vectors import embed_checked

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.embeddings import EmbeddingModel
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

__all__ = ["PydanticAIEmbedder", "PydanticAILanguageModel", "run_translated"]

_EXTRA: Final = "pydantic-ai"
_UNAVAILABLE_STATUS: Final = frozenset({408, 429, *range(500, 600)})


class PydanticAILanguageModel:
    """Completes through a pydantic-ai model.

    Args:
        model: `provider:model`, such as `anthropic:claude-haiku-4-5`, whose key pydantic-ai takes from the
            environment, because the provider was chosen by name; or a model object, which brings its own.
        schema_attempts: How often the model is asked, in all, for an object of a schema.

    Raises:
        MissingExtra: pydantic-ai is not installed.
        ConfigError: it does not know the model, or lacks the key or client library for it.
    """

    def __init__(self, model: str | Model, *, schema_attempts: int = 3) -> None:
        _require_pydantic_ai("The pydantic-ai language models")
        from pydantic_ai.models import infer_model

        if schema_attempts < 1:
            raise ConfigError("schema_attempts", f"must be at least 1, not {schema_attempts}", "Give such a number.")
        with _configured():
            self._model = infer_model(model)
        self._schema_attempts = schema_attempts

    @property
    def wrapped(self) -> Model:
        """The model object of pydantic-ai."""
        return self._model

    @property
    def provider(self) -> str:
        """Who answers, as pydantic-ai names it."""
        return self._model.system

    @property
    def model(self) -> str:
        """Which model answers."""
        return self._model.model_name

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None
    ) -> Completion:
        """The answer; an empty one is an error, and with a schema `data` is an object of it.

        Schemas that refer to themselves are refused, because pydantic-ai does not take them.
        """
        if schema is not None:
            return await self._complete_object(messages, ObjectSchema(schema), max_tokens)
        from pydantic_ai import Agent

        with run_translated(self.provider):
            result = await Agent(self._model).run(
                message_history=_history(messages), model_settings=_settings(max_tokens)
            )
        if not result.output.strip():
            raise ProviderError(self.provider, "its answer is empty")
        return Completion(text=clean(result.output), usage=_usage(result.usage))

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> AsyncIterator[str]:
        """The answer's text, piece by piece."""
        from pydantic_ai import Agent

        said = False
        history, settings = _history(messages), _settings(max_tokens)
        with run_translated(self.provider):
            async with Agent(self._model).run_stream(message_history=history, model_settings=settings) as run:
                async for piece in run.stream_text(delta=True, debounce_by=None):
                    said = said or bool(piece.strip())
                    yield clean(piece)
        if not said:
            raise ProviderError(self.provider, "its answer is empty")

    async def close(self) -> None:
        """Nothing to let go of: pydantic-ai shares its connections and keeps them itself."""

    async def _complete_object(
        self, messages: Sequence[ChatMessage], schema: ObjectSchema, max_tokens: int | None
    ) -> Completion:
        with run_translated(self.provider):
            agent = _object_agent(self._model, schema, self._schema_attempts)
            result = await agent.run(message_history=_history(messages), model_settings=_settings(max_tokens))
        data = cleaned(result.output)
        return Completion(text=json.dumps(data, ensure_ascii=False), usage=_usage(result.usage), data=data)


class PydanticAIEmbedder:
    """Embeds through a pydantic-ai embedding model.

    Args:
        model: `provider:model`, such as `voyageai:voyage-4-lite`, or a model object.
        dimensions: Asks for vectors of this length, and refuses others.

    Raises:
        MissingExtra: pydantic-ai is not installed.
        ConfigError: it does not know the model, or lacks the key or client library for it.
    """

    def __init__(self, model: str | EmbeddingModel, *, dimensions: int | None = None) -> None:
        _require_pydantic_ai("The pydantic-ai embedders")
        from pydantic_ai.embeddings import EmbeddingSettings, infer_embedding_model

        with _configured():
            self._model = infer_embedding_model(model)
        self._dimensions = dimensions
        self._settings = EmbeddingSettings() if dimensions is None else EmbeddingSettings(dimensions=dimensions)

    @property
    def provider(self) -> str:
        """Who makes the vectors, as pydantic-ai names it."""
        return self._model.system

    @property
    def model(self) -> str:
        """Which model makes the vectors."""
        return self._model.model_name

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of texts that are to be found; blank ones get a zero vector and are not sent."""

        async def embed(wanted: list[str]) -> Iterable[Any]:
            return (await self._model.embed(wanted, input_type="document", settings=self._settings)).embeddings

        with run_translated(self.provider):
            return await embed_checked(self.provider, texts, embed, dimensions=self._dimensions)

    async def embed_query(self, text: str) -> Vector:
        """The vector of a text to search with."""

        async def embed(wanted: list[str]) -> Iterable[Any]:
            return (await self._model.embed(wanted, input_type="query", settings=self._settings)).embeddings

        with run_translated(self.provider):
            return (await embed_checked(self.provider, [text], embed, dimensions=self._dimensions))[0]

    async def close(self) -> None:
        """Nothing to let go of: pydantic-ai shares its connections and keeps them itself."""


def _object_agent(model: Model, schema: ObjectSchema, attempts: int) -> Agent[None, dict[str, Any]]:
    from pydantic_ai import Agent, ModelRetry, StructuredDict

    definition = dict(schema.definition)
    agent = Agent(model, output_type=StructuredDict(definition, name="answer"), retries=attempts - 1)

    @agent.output_validator
    def check(data: dict[str, Any]) -> dict[str, Any]:
        try:
            schema.check(data)
        except NotOfSchema as problem:
            raise ModelRetry(f"That answer cannot be used: {problem}.") from problem
        return data

    return agent


def _history(messages: Sequence[ChatMessage]) -> list[ModelMessage]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    if not messages or messages[-1].role is ChatRole.ASSISTANT:
        raise InvalidInput("messages", "must end with a user's or a system's message", "Add what is to be answered.")
    history: list[ModelMessage] = []
    for message in messages:
        content = clean(message.content)
        if message.role is ChatRole.ASSISTANT:
            history.append(ModelResponse(parts=[TextPart(content)]))
        elif message.role is ChatRole.SYSTEM:
            history.append(ModelRequest(parts=[SystemPromptPart(content)]))
        else:
            history.append(ModelRequest(parts=[UserPromptPart(content)]))
    return history


def _settings(max_tokens: int | None) -> ModelSettings:
    from pydantic_ai.settings import ModelSettings

    return ModelSettings() if max_tokens is None else ModelSettings(max_tokens=max_tokens)


def _usage(counted: Any) -> Usage:
    return Usage(counted.input_tokens or 0, counted.output_tokens or 0)


def _require_pydantic_ai(feature: str) -> None:
    if importlib.util.find_spec("pydantic_ai") is None:
        raise MissingExtra(feature, _EXTRA)


@contextmanager
def _configured() -> Iterator[None]:
    from pydantic_ai.exceptions import UserError

    try:
        yield
    except (UserError, ValueError, ImportError) as error:  # ImportError: the client library of one provider
        raise ConfigError("model", f"pydantic-ai cannot use it: {error}", "Correct the name, or install it.") from error


@contextmanager
def run_translated(provider: str) -> Iterator[None]:
    """What pydantic-ai raises in a call, as errors of ours."""
    from pydantic_ai.exceptions import AgentRunError, ModelAPIError, ModelHTTPError, UserError

    try:
        yield
    except ModelHTTPError as error:
        kind = ProviderUnavailable if error.status_code in _UNAVAILABLE_STATUS else ProviderError
        raise kind(provider, f"it answered {error.status_code}: {str(error.body)[:300]}") from error
    except ModelAPIError as error:  # without a status: it was not reached
        raise ProviderUnavailable(provider, str(error)[:300]) from error
    except UserError as error:
        raise ConfigError("model", f"pydantic-ai refuses the call: {error}", "See its message.") from error
    except AgentRunError as error:
        raise ProviderError(provider, f"it gave no usable answer: {error.message[:300]}") from error
