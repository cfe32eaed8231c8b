"""What goes over the wire: memories as rows of JSON, and scopes, filters and conditions as queries."""

from __future__ import annotations

import base64
import hashlib
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lamina.adapters._shared.directions import direction
from lamina.adapters._shared.entry_text import UNREADABLE, entry_of_text, pack, text_of_entry
from lamina.adapters._shared.records import Change, Commit, Control, Stored
from lamina.adapters._shared.word_ranking import distinct_terms
from lamina.adapters.supabase.failures import damaged
from lamina.domain.conditions import And, Compare, Filter, Not, Or
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.instants import to_micros
from lamina.domain.memory import MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput

__all__ = [
    "controls_of",
    "controls_row",
    "direction_text",
    "entry_of",
    "keyword",
    "query",
    "row_of",
    "stored_of",
    "version_of",
]

MAX_DIMENSIONS: Final = 16_000
"""What pgvector's type takes."""

_LONGEST_KEYWORD: Final = 200
"""Characters; an index takes no key of more than about 2,700 bytes."""


def query(scope: Scope, filter: MemoryFilter | None = None, **more: Any) -> dict[str, Any]:
    """What is asked of a memory; the database leaves out what is not named."""
    asked: dict[str, Any] = {"tenant": scope.tenant, "owner": scope.owner, "namespace": scope.namespace, **more}
    if scope.owner is not None and scope.include_shared:
        asked["shared"] = True
    if filter is not None:
        asked |= _filter(filter)
    return {name: value for name, value in asked.items() if value is not None}


def _filter(filter: MemoryFilter) -> dict[str, Any]:
    now = to_micros(filter.now)
    instants = {"created_before": filter.created_before, "updated_before": filter.updated_before}
    return {
        "live_at": now if filter.expiry is Expiry.LIVE else None,
        "expired_at": now if filter.expiry is Expiry.EXPIRED else None,
        "current_at": now if filter.current else None,
        "layers": None if filter.layers is None else sorted(filter.layers),
        "tags": list(filter.tags) or None,
        "tags_any": list(filter.tags_any) or None,
        "min_relevance": filter.min_relevance,
        "min_confidence": filter.min_confidence,
        "has_embedding": filter.has_embedding,
        "where": None if filter.where is None else _tree(filter.where),
        **{name: None if instant is None else to_micros(instant) for name, instant in instants.items()},
    }


def _tree(where: Filter) -> dict[str, Any]:
    match where:
        case And(parts):
            return {"operator": "and", "parts": [_tree(each) for each in parts]}
        case Or(parts):
            return {"operator": "or", "parts": [_tree(each) for each in parts]}
        case Not(part):
            return {"operator": "not", "part": _tree(part)}
        case Compare(path, operator, operand):
            return {"operator": operator.value, "path": list(path), "operand": _comparable(operand)}


def _comparable(value: Any) -> Any:
    """The value with every whole float as a whole number, which the shortest decimal of a large one is not."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {key: _comparable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_comparable(each) for each in value]
    return value


def row_of(change: Change) -> dict[str, Any]:
    """What a commit does to one memory.

    Raises:
        InvalidInput: its vector is longer than the database takes.
    """
    old, new = change.old, change.new
    row: dict[str, Any] = {"id": change.id, "old": None if old is None else old.version, "forgets": change.forgets}
    if new is None:
        return row
    row["past"] = [text_of_entry(each) for each in change.past] or None
    row |= {name: getattr(new, name) for name in ("owner", "namespace", "layer", "seq", "digest", "tags")}
    row |= {"entry": text_of_entry(new), "metadata": _comparable(new.metadata)}
    row |= {name: float(getattr(new, name)) for name in ("relevance", "confidence")}
    row |= {name: to_micros(getattr(new, name)) for name in ("created_at", "updated_at")}
    row["expires_at"] = None if new.expires_at is None else to_micros(new.expires_at)
    if old is None or old.entry.content != new.content:
        row["terms"] = [keyword(term) for term in distinct_terms(new.content)]
    row["same_vector"] = old is not None and old.entry.embedding is new.embedding
    if new.embedding is not None and not row["same_vector"]:
        row |= _vector(new.embedding)
    return row


def _vector(vector: Vector) -> dict[str, Any]:
    if len(vector) > MAX_DIMENSIONS:
        problem = f"has {len(vector)} dimensions, and pgvector takes {MAX_DIMENSIONS}"
        raise InvalidInput("embedding", problem, "Use a model with shorter vectors.")
    return {
        "embedding": base64.b64encode(pack(vector)).decode(),
        "direction": direction_text(vector),
        "dimensions": len(vector),
    }


def direction_text(vector: Vector) -> str | None:
    """The vector's direction as pgvector reads it; None for a zero vector, which has none."""
    unit = direction(array("f", vector))
    return None if unit is None else f"[{','.join(f'{each:.9g}' for each in unit)}]"


def controls_row(commit: Commit) -> list[dict[str, Any]]:
    """What a commit expects and makes of controls."""
    return [
        {"name": each.key, "old": None if each.old is None else each.old.version, "value": each.value}
        for each in commit.controls
    ]


def controls_of(rows: Sequence[Any]) -> dict[str, Control]:
    """The controls of rows `[name, value, version]`.

    Raises:
        StoreDamaged: they are no such rows.
    """
    try:
        return {str(name): Control(str(value), version) for name, value, version in rows}
    except (ValueError, TypeError):
        raise damaged("what is kept beside the memories cannot be read") from None


def keyword(term: str) -> str:
    """The term as the index holds it; no term has a `#`, so the mark of a long one is never another's."""
    return term if len(term) <= _LONGEST_KEYWORD else f"#{hashlib.sha256(term.encode()).hexdigest()}"


def stored_of(row: Any, tenant: str) -> Stored:
    """The memory of one row `[entry, vector, version]`.

    Raises:
        StoreDamaged: it is no such row, or one of another tenant.
    """
    try:
        text, vector, version = row
        entry = entry_of_text(text, None if vector is None else base64.b64decode(vector))
    except UNREADABLE as error:
        raise damaged(f"a memory cannot be read ({type(error).__name__})") from None
    if entry.tenant != tenant:
        raise damaged("a memory says that it belongs to another tenant than its row")
    return Stored(entry, version)


def entry_of(row: Any, tenant: str) -> MemoryEntry:
    """As `stored_of`, without the mark of its version."""
    return stored_of(row, tenant).entry


def version_of(texts: Sequence[str], tenant: str) -> list[MemoryEntry]:
    """Former versions of a memory, which have no vectors; raises as `stored_of`."""
    return [entry_of((text, None, None), tenant) for text in texts]
