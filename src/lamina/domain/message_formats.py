"""Conversions of messages from and to the shapes that language models are called with."""

from __future__ import annotations

from lamina.domain.anthropic_messages import from_anthropic, to_anthropic
from lamina.domain.openai_messages import from_openai, to_openai

__all__ = ["from_anthropic", "from_openai", "to_anthropic", "to_openai"]
