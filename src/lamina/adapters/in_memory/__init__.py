"""The adapter for this process's own memory."""

from lamina.adapters.in_memory.adapter import InMemoryAdapter

__all__ = ["InMemoryAdapter"]
