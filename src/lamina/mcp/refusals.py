"""Errors as a model is told them: what it can mend, with the remedy, and nothing of what went wrong inside."""

from __future__ import annotations

import logging
from typing import Final

from lamina.errors import (
    AdapterUnavailable,
    ConfigError,
    Conflict,
    ContextOverflowError,
    InvalidInput,
    InvalidType,
    LaminaError,
    NoModelConfiguredError,
    NotFound,
    ProviderUnavailable,
    ScopeError,
    ThreadArchivedError,
    Unsupported,
)
from lamina.telemetry import place_of

__all__ = ["sentence_of"]

log = logging.getLogger(__name__)

_TOLD: Final = (
    InvalidInput,
    InvalidType,
    NotFound,
    Conflict,
    ScopeError,
    ThreadArchivedError,
    ContextOverflowError,
    NoModelConfiguredError,
    Unsupported,
)
"""What the caller did, or can do something about."""


def sentence_of(error: Exception) -> str:
    """What the client is told. What went wrong inside goes to the log."""
    if isinstance(error, _TOLD) and not isinstance(error, ConfigError):
        return str(error)
    log.error("A request failed: %s", place_of(error))
    if isinstance(error, AdapterUnavailable | ProviderUnavailable):
        part = "storage" if isinstance(error, AdapterUnavailable) else "model"
        return f"The {part} cannot be reached now. Nothing is wrong with the request: try it again in a moment."
    if isinstance(error, LaminaError):
        return "The memory server failed at this. Its log says more; tell the user."
    return "The memory server has a defect and failed at this. Its log says more; tell the user."
