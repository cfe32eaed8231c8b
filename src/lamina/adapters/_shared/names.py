"""Names of users as keys of one length: whatever stands in them, and however long they are."""

from __future__ import annotations

import hashlib
import json

__all__ = ["key_of_names"]


def key_of_names(*names: str) -> str:
    """32 hexadecimal digits, which no other sequence of names has."""
    written = json.dumps(names)  # which cannot be ambiguous, as names joined by anything could be
    return hashlib.blake2b(written.encode(), digest_size=16).hexdigest()
