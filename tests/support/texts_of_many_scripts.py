"""The same few sentences in many languages, and texts that are dense: written for these tests."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

SENTENCES: dict[str, str] = json.loads(Path(__file__).with_name("sentences.json").read_text(encoding="utf-8"))

_chance = random.Random(7)

DENSE = {
    "base64": base64.b64encode(_chance.randbytes(600)).decode(),
    "code": "    for entry in sorted(entries, key=lambda each: (-each.score, each.id)):\n"
    '        if entry.score >= 0.5 and entry.owner == "mira":\n            kept.append(entry.replace(rank=len(kept)))\n'
    * 4,
    "digits": "".join(_chance.choice("0123456789") for _ in range(600)),
    "emoji": "".join(_chance.choice("😀😂🥰👍🎉🔥🚀💡✅❌🧠📦🐍🍕🌍✨⭐🧪") for _ in range(120)),
    "hex": "\n".join(_chance.randbytes(20).hex() for _ in range(20)),
    "JSON": json.dumps(
        [{"id": 1000 + number, "ok": True, "share": number / 7, "tags": ["a", "b"]} for number in range(20)]
    ),
    "log lines": "\n".join(
        f"2026-03-{10 + number}T08:{number + 10}:07.{number}31Z WARN [job-{number}] id=4f{number}a9c took=0.{number}ms"
        for number in range(15)
    ),
    "numbers": "\n".join(",".join(f"{_chance.uniform(-90, 90):.3f}" for _ in range(6)) for _ in range(20)),
    "upper case": "THE SPARE KEY IS UNDER THE BLUE POT BESIDE THE KITCHEN DOOR. PLEASE TELL NOBODY ABOUT THIS. " * 4,
    "addresses": "\n".join(
        f"https://img.example.com/assets/{_chance.randbytes(5).hex()}/main.min.js?v={number}" for number in range(15)
    ),
}
