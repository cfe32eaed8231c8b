"""What of an answer may be shown: its code, and not what it says, which may quote what was sent."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["code_word"]

_CODE: Final = re.compile(r"[A-Za-z0-9_.]{1,60}", re.ASCII)


def code_word(code: object) -> str:
    """The code that a server gave, if it is one short word, as codes are; else nothing."""
    text = "" if code is None else str(code)
    return text if _CODE.fullmatch(text) else ""
