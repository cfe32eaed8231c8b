"""What a kernel is made with, checked before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lamina.errors import ConfigError, InvalidType
from lamina.kernel.model_router import ModelRouter
from lamina.ports.memory_requests import META_TENANT
from lamina.settings import LaminaConfig, define_config

__all__ = ["check_options", "read_config"]


def check_options(router: object, profile_provider: object, clock: object) -> None:
    """Raise if one of them cannot be used.

    Raises:
        InvalidType: it has a type that cannot be taken.
    """
    if router is not None and not isinstance(router, ModelRouter):
        remedy = "Give ModelRouter(complete=...)."
        raise InvalidType("model_router", f"must be a ModelRouter, not {type(router).__name__}", remedy)
    for name, given in (("profile_provider", profile_provider), ("clock", clock)):
        if given is not None and not callable(given):
            raise InvalidType(name, f"cannot be called: {type(given).__name__}", "Give a function.")


def read_config(config: LaminaConfig | Mapping[str, Any] | None, settings: Mapping[str, Any]) -> LaminaConfig:
    """The settings, from a config, a mapping, or keywords.

    Raises:
        ConfigError: a setting is unknown, wrong, or contradicts another.
        InvalidType: `config` is neither.
    """
    if isinstance(config, LaminaConfig) and settings:
        raise ConfigError(next(iter(settings)), "is given beside a config", "Put it into the config.")
    if config is not None and not isinstance(config, LaminaConfig | Mapping):
        problem = f"must be a LaminaConfig or a mapping, not {type(config).__name__}"
        raise InvalidType("config", problem, "Give define_config(...), or keywords.")
    read = config if isinstance(config, LaminaConfig) else define_config(config, **settings)
    if read.memory.tenant == META_TENANT:
        raise ConfigError("memory.tenant", f"{META_TENANT!r} is reserved", "Choose another name.")
    return read
