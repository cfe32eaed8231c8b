"""What a store finds wrong with itself, or mends, as far as it can: those that cannot are passed over."""

from __future__ import annotations

from typing import Any, Literal

__all__ = ["ask_store", "can_look"]

Deed = Literal["check", "repair"]


def can_look(store: Any) -> bool:
    """Whether the store has a check of its own."""
    return hasattr(store, "check") or hasattr(store, "check_tenant")


async def ask_store(store: Any, deed: Deed, tenant: str) -> list[str]:
    """What its `check` finds or its `repair` did, in plain words; of this tenant alone where it sees no other."""
    if hasattr(store, deed):
        return list(await getattr(store, deed)())
    of_tenant = f"{deed}_tenant"
    return list(await getattr(store, of_tenant)(tenant)) if hasattr(store, of_tenant) else []
