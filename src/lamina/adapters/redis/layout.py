"""What a memory is in Redis: two hashes, its tokens, and its membership in sets.

The one is the memory, with these fields:

* `d`: as JSON; `n`: its version, another one after every write; `p`: its membership, see common.lua.

The other is what it is found by. It is apart because the query engine indexes anew whatever is written
to, vector and all, and counting a read should not do that:

* `k`: what is compared and sorted by, as digits of fixed width: their order as texts is that of the values;
* `a`: its tokens between commas: tenant, owner, namespace, layer, tags, metadata, whether it has a vector, and
  whether it ceases to be current;
* `f`: which field holds its vector, byte for byte;
* `v<dimensions>`: a vector that the query engine can compare; `r`: one that it cannot, beside its direction;
* `w`: its words; `r1`, `r2`, `t1` to `t4`: numbers for the query engine.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lamina.adapters._shared.directions import direction
from lamina.adapters._shared.entry_text import UNREADABLE, entry_of_text, pack, text_of_entry
from lamina.adapters._shared.leaves import leaf_tokens
from lamina.adapters._shared.records import Stored
from lamina.adapters._shared.word_ranking import distinct_terms
from lamina.domain.instants import to_micros
from lamina.domain.memory import Layer, MemoryEntry, Vector
from lamina.errors import StoreDamaged

__all__ = [
    "BACKEND",
    "HAS_VECTOR",
    "HAS_ZERO_VECTOR",
    "Names",
    "Row",
    "SortKey",
    "changed_row",
    "damaged",
    "layer_token",
    "leaf_token",
    "membership",
    "name_token",
    "row_of",
    "stored_of",
    "tag_token",
    "tenant_token",
    "word_token",
    "words_of",
]

BACKEND: Final = "redis"

HAS_VECTOR: Final = "v"
HAS_ZERO_VECTOR: Final = "z"
CEASES: Final = "c"
"""A token of what is not, or will not always be, current."""
NEVER: Final = "9" * 18
"""The instant of expiry of what does not expire."""

_SHIFT: Final = 10**17
"""Added to microseconds, so that every instant of `datetime` is a positive number of at most 18 digits."""

_SAFE: Final = (1e-15, 1e15)
"""Between these lengths, squares of 32-bit floats neither vanish nor overflow."""

_PLAIN_WORD_BYTES: Final = 40


@dataclass(frozen=True, slots=True)
class SortKey:
    """Where something stands in `k`, from the first to the last character, and its field for the query engine."""

    first: int
    last: int
    field: str


RELEVANCE: Final = SortKey(1, 16, "r1")
CONFIDENCE: Final = SortKey(17, 32, "r2")
CREATED: Final = SortKey(33, 50, "t1")
UPDATED: Final = SortKey(51, 68, "t2")
EXPIRES: Final = SortKey(69, 86, "t3")
CURRENT: Final = SortKey(87, 104, "t4")
"""Until when it is current; what an earlier Lamina wrote has none, and no `CEASES`."""

_NEVER_NUMBER: Final = "1e19"


@dataclass(frozen=True, slots=True)
class Names:
    """What the keys of one table begin with; tokens of its tenants are its own too."""

    prefix: str

    @property
    def indexed(self) -> bytes:
        """What the keys begin with that the query engine indexes."""
        return f"{self.prefix}i:".encode()

    @property
    def index(self) -> str:
        """The query engine's index."""
        return f"{self.prefix}index1"

    def key(self, *parts: str) -> str:
        """The key of these parts."""
        return self.prefix + ":".join(parts)

    def tenant(self, tenant: str) -> str:
        """The tenant's token: two tables never have one in common, though one prefix may begin another."""
        return _hash(f"{self.prefix}\0{tenant}")

    def id_of(self, key: bytes) -> str:
        """The id in a key that the query engine indexes."""
        return key[len(self.indexed) + 33 :].decode()


@dataclass(frozen=True, slots=True)
class Row:
    """A memory's fields, and what it is filed under."""

    record: Mapping[str, bytes | str]
    index: Mapping[str, bytes | str]
    membership: str


def name_token(kind: str, name: str) -> str:
    """The token of an owner (`o`) or a namespace (`n`): of every name another one, whatever stands in it."""
    return kind + _hash(name)


def tag_token(tag: str) -> str:
    """The token of a tag."""
    return f"g{_hash(tag)}"


def tenant_token(tenant: str) -> str:
    """The token of whose key parts are these."""
    return f"t{tenant}"


def leaf_token(token: str) -> str:
    """The token of what stands in the metadata: see `leaves`. No token is a number, in any grammar."""
    return f"m{token}"


def layer_token(layer: Layer) -> str:
    """The token of a layer."""
    return f"l{layer.value}"


def word_token(word: str) -> str:
    """The word, if the query engine's tokenizer and grammar leave it alone; else a token of it."""
    plain = word.isascii() and word.isalnum() and len(word) <= _PLAIN_WORD_BYTES
    return word if plain else f"_{_hash(word)}"


def words_of(content: str) -> str:
    """What the query engine indexes of a text, as `w`."""
    return " ".join(map(word_token, distinct_terms(content)))


def membership(entry: MemoryEntry) -> str:
    """What the sets file the entry under."""
    return entry.layer.value[0] + _hash(entry.owner) + _hash(entry.namespace) + entry.digest[:32]


def real_text(value: float) -> str:
    """A number of zero or more, such that the order of the texts is that of the numbers."""
    return struct.pack(">d", value + 0.0).hex()


def instant_text(instant: datetime | None) -> str:
    """An instant, such that the order of the texts is that of the instants."""
    return NEVER if instant is None else f"{to_micros(instant) + _SHIFT:018d}"


def row_of(tenant: str, entry: MemoryEntry, *, words: bool = True, vector: bool = True) -> Row:
    """The entry's row; without its words or its vector where they stay what they are."""
    index: dict[str, bytes | str] = {
        "k": "".join(
            (
                real_text(entry.relevance),
                real_text(entry.confidence),
                instant_text(entry.created_at),
                instant_text(entry.updated_at),
                instant_text(entry.expires_at),
                instant_text(entry.current_until),
            )
        ),
        "a": ",".join(_tokens(tenant, entry)),
        RELEVANCE.field: repr(float(entry.relevance)),
        CONFIDENCE.field: repr(float(entry.confidence)),
        CREATED.field: str(to_micros(entry.created_at)),
        UPDATED.field: str(to_micros(entry.updated_at)),
        EXPIRES.field: _NEVER_NUMBER if entry.expires_at is None else str(to_micros(entry.expires_at)),
    }
    if entry.current_until is not None:
        index[CURRENT.field] = str(to_micros(entry.current_until))
    if words:
        index["w"] = words_of(entry.content)
    if vector and entry.embedding is not None:
        index |= _vector_fields(entry.embedding)
    return Row({"d": text_of_entry(entry), "p": membership(entry)}, index, membership(entry))


def changed_row(tenant: str, old: MemoryEntry | None, new: MemoryEntry) -> tuple[Row, list[str]]:
    """The new row with no more of its index than must be written, and the fields of it that must go."""
    if old is None:
        return row_of(tenant, new), []
    words = old.content != new.content
    vector = not _same_vector(old.embedding, new.embedding)
    row = row_of(tenant, new, words=words, vector=vector)
    before = row_of(tenant, old, words=False, vector=vector).index
    written = {name: value for name, value in row.index.items() if before.get(name) != value}
    return Row(row.record, written, row.membership), [name for name in before if name not in row.index]


def stored_of(found: list[Any]) -> Stored | None:
    """What a script fetched of one memory; None if it is not there."""
    text, version, vector = found
    if text is None:
        return None
    try:
        return Stored(entry_of_text(text, vector), version)
    except UNREADABLE:
        raise damaged("a memory cannot be read") from None  # the cause quotes it


def damaged(what: str) -> StoreDamaged:
    """The error for keys that cannot be read as ours."""
    return StoreDamaged(BACKEND, what, "Restore the server from a backup, or give another table or prefix.")


def _tokens(tenant: str, entry: MemoryEntry) -> Iterable[str]:
    yield tenant_token(tenant)
    yield name_token("o", entry.owner)
    yield name_token("n", entry.namespace)
    yield layer_token(entry.layer)
    if entry.current_until is not None:
        yield CEASES
    if entry.embedding is not None:
        yield HAS_VECTOR
        if not any(entry.embedding):
            yield HAS_ZERO_VECTOR
    yield from map(tag_token, dict.fromkeys(entry.tags))
    yield from map(leaf_token, leaf_tokens(entry.metadata))


def _vector_fields(vector: Vector) -> dict[str, bytes | str]:
    field = f"v{len(vector)}"
    length = sum(each * each for each in vector) ** 0.5
    if _SAFE[0] < length < _SAFE[1]:
        return {field: pack(vector), "f": field}
    unit = direction(vector)
    fields: dict[str, bytes | str] = {"r": pack(vector), "f": "r"}
    return fields if unit is None else fields | {field: pack(unit)}


def _same_vector(one: Vector | None, other: Vector | None) -> bool:
    if one is other:
        return True
    return one is not None and other is not None and pack(one) == pack(other)


def _hash(text: str) -> str:
    """128 bits of it, in hex: equal if and only if the texts are."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
