"""A computed context in the shape that a model takes; the methods of `ComputedContext` do the same."""

from __future__ import annotations

from lamina.domain.context_rendering import messages_of, to_anthropic, to_openai, to_prompt

__all__ = ["messages_of", "to_anthropic", "to_openai", "to_prompt"]
