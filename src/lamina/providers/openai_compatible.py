"""Embeddings and chat completions of any server that speaks OpenAI's HTTP interface."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from lamina.domain.memory import Vector
from lamina.domain.text import clean
from lamina.errors import ConfigError, InvalidInput, ProviderError, ProviderUnavailable
from lamina.ports.language_model import ChatMessage, Completion, Usage
from lamina.providers.batching import batches, cut_to_tokens
from lamina.providers.json_http import HttpLimits, JsonHttpClient
from lamina.providers.structured_output import ObjectSchema, request_object
from lamina.providers.vectors import embed_checked

__all__ = ["OPENAI_URL", "OpenAICompatibleEmbedder", "OpenAICompatibleLanguageModel"]

OPENAI_URL: Final = "https://api.openai.com/v1"


class OpenAICompatibleEmbedder:
    """Embeds through `POST {base_url}/embeddings`.

    The key is only what is given here: no environment variable is read.

    Args:
        model: The model's name at the server.
        base_url: Where the server is, up to and with `/v1`.
        api_key: Sent as a bearer token; None sends none.
        provider: Part of the fingerprint; by default `openai` at OpenAI's own address, else `http`.
        dimensions: Asks for vectors of this length, and refuses others.
        batch_size: Texts in one request.
        batch_tokens: Tokens in one request, about.
        max_input_tokens: A longer text is cut there, about; the rest of it does not count for its vector.
        timeout: Seconds for one attempt.
        max_retries: Attempts after the first, on 429, 5xx and broken connections; Retry-After is honoured.
        max_elapsed: Seconds for all attempts of a request together.

    Raises:
        ConfigError: an option cannot be used.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI_URL,
        api_key: str | None = None,
        provider: str | None = None,
        dimensions: int | None = None,
        batch_size: int = 256,
        batch_tokens: int = 100_000,
        max_input_tokens: int = 8_000,
        timeout: float = 20.0,
        max_retries: int = 3,
        max_elapsed: float = 60.0,
    ) -> None:
        self._model = _checked_model(model)
        self._provider = provider or _provider_of(base_url)
        self._dimensions = None if dimensions is None else _at_least_one("dimensions", dimensions)
        self._batch_size = _at_least_one("batch_size", batch_size)
        self._batch_tokens = _at_least_one("batch_tokens", batch_tokens)
        self._max_input_tokens = _at_least_one("max_input_tokens", max_input_tokens)
        limits = HttpLimits(timeout=timeout, max_retries=max_retries, max_elapsed=max_elapsed)
        self._http = JsonHttpClient(self._provider, base_url, api_key=api_key, limits=limits)

    @property
    def provider(self) -> str:
        """Who makes the vectors."""
        return self._provider

    @property
    def model(self) -> str:
        """Which model makes the vectors."""
        return self._model

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of texts that are to be found; blank ones get a zero vector and are not sent."""
        return await embed_checked(self._provider, texts, self._embed, dimensions=self._dimensions)

    async def embed_query(self, text: str) -> Vector:
        """The vector of a text to search with."""
        return (await self.embed_documents([text]))[0]

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._http.close()

    async def _embed(self, texts: list[str]) -> Iterable[Any]:
        cut = [cut_to_tokens(text, self._max_input_tokens) for text in texts]
        vectors: list[Any] = []
        for batch in batches(cut, max_items=self._batch_size, max_tokens=self._batch_tokens):
            vectors += await self._embed_batch(batch)
        return vectors

    async def _embed_batch(self, batch: list[str]) -> list[Any]:
        payload: dict[str, Any] = {"model": self._model, "input": batch}
        if self._dimensions is not None:
            payload["dimensions"] = self._dimensions
        if self._provider == "openai":
            payload["encoding_format"] = "base64"  # a quarter of the size; other servers may not know the option
        answer = await self._http.post("embeddings", payload)
        items = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ProviderError(self._provider, "its answer holds no list of embeddings")
        if len(items) != len(batch):
            raise ProviderError(self._provider, f"it answered {len(items)} vectors for {len(batch)} texts")
        return [_decoded(self._provider, item.get("embedding")) for item in _in_order(self._provider, items)]


class OpenAICompatibleLanguageModel:
    """Completes through `POST {base_url}/chat/completions`.

    Args:
        model: The model's name at the server.
        base_url: Where the server is, up to and with `/v1`.
        api_key: Sent as a bearer token; None sends none, and no environment variable is read.
        provider: Who answers, for messages; by default `openai` at OpenAI's own address, else `http`.
        temperature: Sent if given.
        response_format: How a schema is asked for: `json_schema` hands it to the server, `json_object` asks the
            server for any object and tells the model the schema, `none` only tells the model.
        schema_attempts: How often the model is asked, in all, for an object of a schema.
        timeout: Seconds for one attempt; of a stream, for each wait.
        max_retries: Attempts after the first, on 429, 5xx and broken connections; Retry-After is honoured.
        max_elapsed: Seconds for all attempts of a request together.

    Raises:
        ConfigError: an option cannot be used.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI_URL,
        api_key: str | None = None,
        provider: str | None = None,
        temperature: float | None = None,
        response_format: Literal["json_schema", "json_object", "none"] = "json_schema",
        schema_attempts: int = 3,
        timeout: float = 120.0,
        max_retries: int = 3,
        max_elapsed: float = 300.0,
    ) -> None:
        self._model = _checked_model(model)
        self._provider = provider or _provider_of(base_url)
        self._temperature = temperature
        if response_format not in {"json_schema", "json_object", "none"}:
            raise ConfigError(
                "response_format", f"{response_format!r} is unknown", "Use json_schema, json_object, none."
            )
        self._response_format = response_format
        self._schema_attempts = _at_least_one("schema_attempts", schema_attempts)
        limits = HttpLimits(timeout=timeout, max_retries=max_retries, max_elapsed=max_elapsed)
        self._http = JsonHttpClient(self._provider, base_url, api_key=api_key, limits=limits)

    @property
    def provider(self) -> str:
        """Who answers."""
        return self._provider

    @property
    def model(self) -> str:
        """Which model answers."""
        return self._model

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None
    ) -> Completion:
        """The answer; an empty one is an error, and with a schema `data` is an object of it."""
        payload = self._payload(max_tokens)
        if schema is None:
            answer = await self._ask(messages, payload)
            if not answer.text.strip():
                raise ProviderError(self._provider, "its answer is empty")
            return answer
        wanted = ObjectSchema(schema)
        told = list(messages) if self._response_format == "json_schema" else [*messages, wanted.instruction()]
        if self._response_format == "json_schema":
            definition = {"name": "answer", "schema": wanted.definition}
            payload["response_format"] = {"type": "json_schema", "json_schema": definition}
        elif self._response_format == "json_object":
            payload["response_format"] = {"type": "json_object"}

        async def ask(conversation: Sequence[ChatMessage]) -> Completion:
            return await self._ask(conversation, payload)

        return await request_object(self._provider, ask, told, wanted, attempts=self._schema_attempts)

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> AsyncIterator[str]:
        """The answer's text, piece by piece; ends with an error if the server breaks off or says nothing."""
        payload = {**self._payload(max_tokens), "messages": _rendered(messages), "stream": True}
        finished = said = False
        async with aclosing(self._http.stream("chat/completions", payload)) as events:
            async for data in events:
                if data.strip() == "[DONE]":
                    finished = True
                    break
                piece, reason = self._piece(data)
                finished = finished or reason is not None
                if piece:
                    said = said or not piece.isspace()
                    yield clean(piece)
        if not finished:
            raise ProviderUnavailable(self._provider, "the stream ended before the answer did")
        if not said:
            raise ProviderError(self._provider, "its answer is empty")

    async def exchange(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[Mapping[str, Any], Usage]:
        """One exchange in the server's own form, tool calls included: its message as it came, and what it cost.

        Raises:
            ProviderUnavailable: down, timed out or rate limited, after the retries.
            ProviderError: the server refused, or answered no message.
        """
        payload = {**self._payload(None), "messages": [dict(each) for each in messages]}
        if tools:
            payload["tools"] = [dict(each) for each in tools]
        answer = await self._http.post("chat/completions", payload)
        message = _first_choice(answer).get("message")
        if not isinstance(message, dict):
            raise ProviderError(self._provider, "its answer holds no message")
        return message, _usage(answer.get("usage") if isinstance(answer, dict) else None)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._http.close()

    def _payload(self, max_tokens: int | None) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": self._model}
        if self._temperature is not None:
            payload["temperature"] = self._temperature
        if max_tokens is not None:
            # OpenAI's newer models refuse `max_tokens`; other servers know only that one.
            payload["max_completion_tokens" if self._provider == "openai" else "max_tokens"] = max_tokens
        return payload

    async def _ask(self, messages: Sequence[ChatMessage], payload: Mapping[str, Any]) -> Completion:
        answer = await self._http.post("chat/completions", {**payload, "messages": _rendered(messages)})
        message = _first_choice(answer).get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, str):
            refused = isinstance(message, dict) and message.get("refusal")
            raise ProviderError(self._provider, "the model refused" if refused else "its answer holds no text")
        return Completion(text=clean(content), usage=_usage(answer.get("usage")))

    def _piece(self, data: str) -> tuple[str, object]:
        """The text in one event, and the reason why the answer ends with it, if it does."""
        try:
            event = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ProviderError(self._provider, "an event of its stream is no JSON") from error
        if isinstance(event, dict) and event.get("error"):
            raise ProviderError(self._provider, "it reported an error in the middle of the stream")
        choice = _first_choice(event)
        delta = choice.get("delta")
        content = delta.get("content") if isinstance(delta, dict) else None
        return (content if isinstance(content, str) else ""), choice.get("finish_reason")


def _first_choice(answer: object) -> Mapping[str, Any]:
    choices = answer.get("choices") if isinstance(answer, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _rendered(messages: Sequence[ChatMessage]) -> list[dict[str, str]]:
    if not messages:
        raise InvalidInput("messages", "is empty", "Give at least one message.")
    return [{"role": message.role.value, "content": clean(message.content)} for message in messages]


def _usage(counted: object) -> Usage:
    if not isinstance(counted, dict):
        return Usage()
    numbers = (counted.get("prompt_tokens"), counted.get("completion_tokens"))
    return Usage(*(number if isinstance(number, int) else 0 for number in numbers))


def _in_order(provider: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items by their `index`, or as they came if none has one."""
    indices = [item.get("index") for item in items]
    if all(index is None for index in indices):
        return items
    by_index = {index: item for index, item in zip(indices, items, strict=True) if isinstance(index, int)}
    if set(by_index) != set(range(len(items))):
        raise ProviderError(provider, "the indices of its vectors are not those of the texts")
    return [by_index[index] for index in range(len(items))]


def _decoded(provider: str, embedding: object) -> Any:
    """A list of numbers, sent as such or as the base64 of little-endian float32."""
    if not isinstance(embedding, str):
        return embedding
    import numpy as np

    try:
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    except (binascii.Error, ValueError) as error:
        raise ProviderError(provider, "a vector is neither a list nor base64 of float32 numbers") from error


def _provider_of(base_url: str) -> str:
    return "openai" if urlsplit(base_url).hostname == urlsplit(OPENAI_URL).hostname else "http"


def _checked_model(model: object) -> str:
    if not isinstance(model, str) or not model.strip():
        raise ConfigError("model", "is missing", "Name the model, as in openai:text-embedding-3-small.")
    return model


def _at_least_one(field: str, number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ConfigError(field, f"must be a whole number of at least 1, not {number!r}", "Give such a number.")
    return number
