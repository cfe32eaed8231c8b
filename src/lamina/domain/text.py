"""The one rule for text, the same on every backend.

Stored text is what UTF-8 can carry and every backend accepts: no lone surrogate, no NUL.
`clean` makes it so (each such character becomes U+FFFD, a surrogate pair becomes its character);
the engine cleans content, tags and metadata before anything else sees them. Names that identify
(tenant, owner, namespace, ids) are never altered: `check_name` refuses them instead.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from lamina.errors import InvalidInput, InvalidType

__all__ = ["check_name", "clean", "content_digest", "is_blank", "is_clean", "is_mostly_latin", "snake_case"]

MAX_NAME_CHARS = 512

_UNCLEAN = re.compile("[\x00\ud800-\udfff]")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
"""Categories of Unicode that show nothing. Private and unassigned ones are not among them: fonts draw them."""
_LAST_LATIN = "\u024f"


def is_clean(text: str) -> bool:
    """Whether the text holds neither a NUL nor a surrogate."""
    if text.isascii():
        return "\x00" not in text
    return _UNCLEAN.search(text) is None


def is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen: spaces, controls, and characters of no width such as U+200B."""
    if text[:1].isalnum():  # as nearly every text and name begins
        return False
    return all(unicodedata.category(character) in _INVISIBLE for character in text)


def is_mostly_latin(text: str) -> bool:
    """Whether at least half of the text's letters are Latin; so it is of a text without letters."""
    if text.isascii():
        return True
    letters = [character for character in text if character.isalpha()]
    return 2 * sum(character <= _LAST_LATIN for character in letters) >= len(letters)


def clean(text: str) -> str:
    """The text with surrogate pairs joined, and lone surrogates and NUL replaced by U+FFFD."""
    if is_clean(text):
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\x00", "\ufffd")


def check_name(field: str, name: object) -> str:
    """The name, if it can identify something: text of 1 to 512 characters, not blank, clean."""
    if (
        type(name) is str
        and name.isascii()
        and name.isprintable()
        and name[:1].isalnum()
        and len(name) <= MAX_NAME_CHARS
    ):
        return name
    if not isinstance(name, str):
        raise InvalidType(field, f"must be text, not {type(name).__name__}", f"Give {field} as a str.")
    if is_blank(name):
        raise InvalidInput(field, "is blank", f"Give a {field} with at least one visible character.")
    if len(name) > MAX_NAME_CHARS:
        raise InvalidInput(field, f"has {len(name)} characters", f"Use at most {MAX_NAME_CHARS}.")
    if not is_clean(name):
        raise InvalidInput(field, "holds a NUL or a lone surrogate", "Names are never altered: remove it.")
    return name


def snake_case(key: str) -> str:
    """The key as our fields are spelled: `threadId` is `thread_id`."""
    if key.isascii() and key.islower():
        return key
    return _HUMP.sub("_", key).lower()


def content_digest(content: str) -> str:
    """SHA-256, in hex, of the content as it counts for "the same memory".

    That is: Unicode NFC, trimmed, runs of white space made one space; case counts.
    """
    normal = content if content.isascii() else unicodedata.normalize("NFC", content)
    return hashlib.sha256(" ".join(normal.split()).encode()).hexdigest()
