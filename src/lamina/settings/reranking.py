"""How a reranker may be set."""

from __future__ import annotations

from typing import Any

from lamina.errors import ConfigError

__all__ = ["reranker_setting"]


def reranker_setting(value: Any) -> Any:
    """A reranker, a callable, or a name; a text from the environment is a name."""
    if value is None or callable(value) or hasattr(value, "score") or (isinstance(value, str) and value.strip()):
        return value
    problem = f"must be a reranker, a callable or a name, not {type(value).__name__}"
    raise ConfigError("", problem, "Name one, such as cross-encoder, or `none`.")
