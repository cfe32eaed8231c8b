"""How many tokens a text has, about: arithmetic on the kinds of its characters, without a vocabulary.

The measure is `o200k_base`, the vocabulary of OpenAI's newer models. A text is counted twice, and the
larger number holds: a token for four characters, which is right for plain English; and the pieces
that its characters fall into, which is right for what is denser, such as other scripts, code, JSON and
hashes. No loop runs over the characters: they are mapped to classes, and classes and pairs of them
counted, by methods of `bytes`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from operator import mul
from types import MappingProxyType
from typing import Final

__all__ = ["estimate_tokens", "token_weight"]

_CHARACTERS_PER_TOKEN: Final = 4

_CLASSES: Final = (
    bytes(
        ord(
            "l" if char.islower() else "u" if char.isupper() else "d" if char.isdigit() else " " if char == " " else "p"
        )
        if (char := chr(code)).isprintable()
        else ord("n")
        for code in range(128)
    )
    + b"p" * 128
)
"""Of each ASCII character: l(ower), u(pper), d(igit), space, n(ew line and the like), p(unctuation)."""

_ASCII: Final[Mapping[bytes, float]] = MappingProxyType(
    {
        b"l": 0.135,
        b"d": 0.34,
        b"p": 0.40,
        b"n": 0.20,
        # A word begins, each with a piece of its own:
        b" l": 0.53,
        b" u": 1.20,
        b"pl": 0.48,
        b"pu": 0.20,
        b"lu": 1.47,  # camelCase, and base64
        b"uu": 0.33,
        # Digits come in threes, and letters among them (hashes) in ones and twos:
        b"dl": 0.88,
        b"ld": 0.75,
        b"ud": 1.15,
        b"du": 1.70,
        b"pd": 0.60,
        b" d": 2.20,
        b"nd": 1.60,
        # Marks that do not lean on the word behind them:
        b" p": 0.97,
        b"pp": 0.57,
    }
)
"""Tokens for each character of a class, and for each pair of neighbours: fitted to texts, code and data."""

_OVERLAPPING: Final = (b"uu", b"pp")
"""Of these pairs, only those that share no character with another are counted: `ppp` holds one."""

_AS_UNITS: Final = tuple(
    (kind, kind.decode("utf-16-le") if len(kind) > 1 and kind not in _OVERLAPPING else "", weight)
    for kind, weight in _ASCII.items()
)
"""Each kind, and a pair as the one character that its two bytes are in UTF-16, which is counted twice as fast."""

_LONG: Final = 256
"""From so many characters on that pays."""

_BLOCKS: Final = (
    (0x02, 2.20),  # Latin with marks: the words that have them fall into more pieces than English ones
    (0x03, 0.44),  # Greek
    (0x04, 0.37),  # Cyrillic
    (0x05, 0.46),  # Armenian, Hebrew
    (0x06, 0.43),  # Arabic
    (0x08, 1.50),
    (0x09, 0.42),  # Devanagari, Bengali
    (0x0A, 0.55),  # Gurmukhi, Gujarati
    (0x0B, 0.60),  # Oriya, Tamil
    (0x0D, 0.54),  # Telugu, Kannada, Malayalam, Sinhala
    (0x0E, 0.50),  # Thai, Lao
    (0x0F, 1.60),  # Tibetan
    (0x10, 0.50),  # Burmese, Georgian
    (0x11, 2.00),
    (0x16, 2.10),  # Ethiopic and others
    (0x18, 0.70),  # Khmer, Mongolian
    (0x1D, 2.50),
    (0x1E, 0.70),  # Latin with two marks, as in Vietnamese
    (0x1F, 1.60),
    (0x20, 1.50),  # dashes, curly quotes, joiners
    (0x2B, 1.60),  # signs: arrows, mathematics, boxes, dingbats
    (0x2F, 3.00),
    (0x33, 0.85),  # kana, and marks of Chinese and Japanese
    (0x4D, 3.00),  # rare characters of Chinese
    (0x9F, 0.95),  # Chinese characters
    (0xAB, 3.00),
    (0xD7, 0.76),  # Hangul
    (0xDB, 2.30),  # first halves of what is beyond 0xFFFF: emoji, above all
    (0xDF, 0.00),  # second halves
    (0xFA, 3.00),
    (0xFD, 1.50),  # Arabic and others, ready-shaped
    (0xFE, 1.00),  # what makes a sign an emoji
    (0xFF, 1.00),  # wide and narrow forms
)
"""Up to which high byte of UTF-16 what number of tokens holds for a character."""

_WEIGHTS: Final = tuple(next(weight for last, weight in _BLOCKS if high <= last) for high in range(256))

_RARE: Final = (
    ((0x04, 0x06), re.compile("[ӕӑӗҫӳңҡҙәڕڵۆێەۇۈېۋھ]"), 0.8),  # of smaller languages in Cyrillic and Arabic script
    ((0x0B,), re.compile("[\u0b00-\u0b7f]"), 0.5),  # Oriya
    ((0x0E,), re.compile("[\u0e80-\u0eff]"), 1.4),  # Lao
    ((0x10,), re.compile("[\u1022\u1060-\u109f]"), 1.5),  # Shan and others in Burmese script
)
"""Letters that cost more than the others of their block: the block, they, and how much more."""


def estimate_tokens(text: str) -> int:
    """About as many tokens as `o200k_base` makes of the text, rather too many than too few; 0 for the empty one.

    Never fewer than a quarter of its characters, rounded up. It never shrinks when text is appended,
    and that of a whole is at most the sum of its parts' and a few for each seam. Linear in the length.
    """
    return math.ceil(token_weight(text))


def token_weight(text: str) -> float:
    """What `estimate_tokens` rounds up: for pieces, whose rounding would add up."""
    length = len(text)
    ascii_only = text.encode("ascii", "ignore")
    classes = ascii_only.translate(_CLASSES)
    pieces = _ascii_pieces(classes)
    if len(ascii_only) != length:
        pieces += _beyond_ascii(text, len(ascii_only))
    return max(length / _CHARACTERS_PER_TOKEN, pieces)


def _ascii_pieces(classes: bytes) -> float:
    length = len(classes)
    if length < _LONG:
        pieces: float = sum(map(mul, map(classes.count, _ASCII), _ASCII.values()))
        return pieces
    even, odd = length & ~1, length - (length & 1 ^ 1)
    units = classes[:even].decode("utf-16-le") + classes[1:odd].decode("utf-16-le")  # pairs from even places, and odd
    return sum((units.count(unit) if unit else classes.count(kind)) * weight for kind, unit, weight in _AS_UNITS)


def _beyond_ascii(text: str, ascii_count: int) -> float:
    highs = text.encode("utf-16-le", "surrogatepass")[1::2]
    blocks = set(highs)
    pieces = -_WEIGHTS[0] * ascii_count  # they are in block 0 too
    for block in blocks:
        pieces += highs.count(block) * _WEIGHTS[block]
    for among, letters, more in _RARE:
        if not blocks.isdisjoint(among):
            pieces += len(letters.findall(text)) * more
    return pieces
