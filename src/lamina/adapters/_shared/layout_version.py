"""What a newer Lamina has laid out in another way is refused, and not touched."""

from __future__ import annotations

from lamina.errors import StoreDamaged

__all__ = ["made_by_newer"]


def made_by_newer(adapter: str, what: str, found: object, known: object) -> StoreDamaged:
    """The error for a collection whose layout has a version that this code does not know yet."""
    problem = f"{what} was made by a newer Lamina (layout {found}, and this one knows {known})"
    return StoreDamaged(adapter, problem, "Upgrade Lamina, or give another table; nothing was changed.")
