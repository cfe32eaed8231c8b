"""Memories in Redis: hashes and sorted sets, and the query engine where the server has it."""

from __future__ import annotations

from lamina.errors import MissingExtra

try:
    import redis as _redis  # noqa: F401 - every module here needs it: what is missing is said once, at the door
except ImportError as error:
    if error.name is not None and error.name.partition(".")[0] != "redis":
        raise
    raise MissingExtra("The redis adapter", "redis") from error

from lamina.adapters.redis.adapter import RedisAdapter

__all__ = ["RedisAdapter"]
