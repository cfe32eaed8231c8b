"""Settings as they may be shown: secrets stay secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, SecretStr

__all__ = ["redacted", "redacted_secret", "redacted_url"]

_SHOWN: Final = 4
_LONG_ENOUGH: Final = 20
_PASSWORD: Final = re.compile(r"(?<=://)([^/@\s]*?):([^/\s]*)@")
_SECRET_NAME: Final = re.compile("(?i)token|key|password|secret|credential")
_SECRET_PARAMETER: Final = re.compile(r"(?i)([?&#][^=&]*(?:token|key|password|secret)[^=&]*=)[^&#]*")


def redacted(value: Any) -> Any:
    """The settings as JSON can carry them, with every secret reduced to what tells it from others."""
    if isinstance(value, BaseModel):
        return {name: redacted(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, SecretStr):
        return redacted_secret(value.get_secret_value())
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(redacted(key)): _redacted_named(str(key), each) for key, each in value.items()}
    if isinstance(value, str):
        return redacted_url(value)
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"<{name}>"


def _redacted_named(name: str, value: Any) -> Any:
    return redacted_secret(value) if isinstance(value, str) and _SECRET_NAME.search(name) else redacted(value)


def redacted_secret(secret: str) -> str:
    """`first4…last4` of a long secret, `***` of one so short that this would give much of it away."""
    return f"{secret[:_SHOWN]}…{secret[-_SHOWN:]}" if len(secret) >= _LONG_ENOUGH else "***"


def redacted_url(text: str) -> str:
    """The text with passwords and secret parameters of a url in it starred."""
    return _SECRET_PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text))
