"""Any language model as one that calls tools, for pydantic-ai's loop.

Models of pydantic-ai and of OpenAI-compatible servers call tools in their own way. Any other is asked for
an object that says which tools it wants called, or the answer.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from lamina.agents.plain_chat import to_chat
from lamina.domain.message import Message
from lamina.domain.message_formats import to_openai
from lamina.domain.text import clean
from lamina.domain.usage import Usage
from lamina.errors import ProviderError
from lamina.ports.language_model import ChatMessage, ChatRole, LanguageModel
from lamina.prompts import render
from lamina.providers.openai_compatible import OpenAICompatibleLanguageModel
from lamina.providers.pydantic_ai import PydanticAILanguageModel
from lamina.providers.pydantic_ai_messages import from_model_messages

if TYPE_CHECKING:
    from pydantic_ai.tools import ToolDefinition

__all__ = ["tool_model", "tools_as_sent"]


def tool_model(model: LanguageModel) -> Model[Any]:
    """The model as pydantic-ai's loop takes it."""
    if isinstance(model, PydanticAILanguageModel):
        return model.wrapped
    if isinstance(model, OpenAICompatibleLanguageModel):
        return _OpenAICompatibleModel(model)
    return _ToldModel(model)


def tools_as_sent(model: LanguageModel, tools: Sequence[ToolDefinition]) -> list[dict[str, Any]]:
    """What is sent for the tools, for a budget to count."""
    if isinstance(model, PydanticAILanguageModel | OpenAICompatibleLanguageModel):
        return [_function(tool) for tool in tools]
    told, wish = _told(tools)
    return [{"told": told}, {"schema": wish}]


class _Adapted(Model[Any]):
    """What both adapted kinds share."""

    def __init__(self, inner: LanguageModel) -> None:
        super().__init__()
        self._inner = inner

    @property
    def model_name(self) -> str:
        return self._inner.model

    @property
    def system(self) -> str:
        return self._inner.provider

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        del model_settings
        parts, usage = await self._answer(from_model_messages(messages), model_request_parameters.function_tools)
        return ModelResponse(
            parts=parts,
            usage=RequestUsage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens),
            model_name=self.model_name,
        )

    @abstractmethod
    async def _answer(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition]
    ) -> tuple[list[ModelResponsePart], Usage]:
        """Text and calls of tools, and what they cost."""


class _OpenAICompatibleModel(_Adapted):
    """Hands the tools to the server; retries, keys and errors are those of the model that it wraps."""

    def __init__(self, inner: OpenAICompatibleLanguageModel) -> None:
        super().__init__(inner)
        self._server = inner

    async def _answer(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition]
    ) -> tuple[list[ModelResponsePart], Usage]:
        message, usage = await self._server.exchange(to_openai(messages), tools=[_function(tool) for tool in tools])
        return _parts(self.system, message), usage


class _ToldModel(_Adapted):
    """Tells the tools in the prompt, and asks for an object with the calls or the answer."""

    async def _answer(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition]
    ) -> tuple[list[ModelResponsePart], Usage]:
        told, wish = _told(tools)
        chat = [ChatMessage(ChatRole.SYSTEM, told), *to_chat(messages)]
        completion = await self._inner.complete(chat, schema=wish)
        data = completion.data or {}
        calls = data.get("calls") or []
        parts: list[ModelResponsePart] = [ToolCallPart(call["tool"], call["arguments"]) for call in calls]
        return parts or [TextPart(str(data.get("answer") or ""))], completion.usage


def _function(tool: ToolDefinition) -> dict[str, Any]:
    described = {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
    return {"type": "function", "function": described}


def _told(tools: Sequence[ToolDefinition]) -> tuple[str, dict[str, Any]]:
    """What a model that calls no tools is told of them, and the schema of the object that it is asked for."""
    return render("tool_calls", tools="\n".join(map(_described, tools))), _wish([tool.name for tool in tools])


def _described(tool: ToolDefinition) -> str:
    schema = json.dumps(tool.parameters_json_schema, ensure_ascii=False)
    return f"- {tool.name}: {tool.description or 'no description'}\n  arguments: {schema}"


def _wish(names: Sequence[str]) -> dict[str, Any]:
    call = {
        "type": "object",
        "properties": {"tool": {"enum": list(names)}, "arguments": {"type": "object"}},
        "required": ["tool", "arguments"],
    }
    return {
        "type": "object",
        "properties": {"answer": {"type": "string"}, "calls": {"type": "array", "items": call, "maxItems": 16}},
        "required": ["answer", "calls"],
    }


def _parts(provider: str, message: Mapping[str, Any]) -> list[ModelResponsePart]:
    content = message.get("content")
    parts: list[ModelResponsePart] = [TextPart(clean(content))] if isinstance(content, str) and content else []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(function, dict) or not isinstance(name, str) or not name:
            raise ProviderError(provider, "a tool call in its answer names no tool")
        arguments = function.get("arguments")
        wanted = ToolCallPart(clean(name), arguments if isinstance(arguments, str | dict) else None)
        call_id = call.get("id")
        if isinstance(call_id, str) and call_id:  # else the one that the part made up
            wanted.tool_call_id = call_id
        parts.append(wanted)
    if not parts:
        raise ProviderError(provider, "its answer holds neither text nor a tool call")
    return parts
