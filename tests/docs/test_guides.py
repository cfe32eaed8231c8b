"""The tables of the guides say what the code does: every default, and every row of troubles, is held against it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from lamina import CompactionConfig, LaminaConfig, MemoryConfig, MemoryEngine
from lamina.conversation.short_term import BaseMemory
from lamina.domain.memory import Layer
from lamina.kernel.checks import CHECKS
from lamina.settings.tiers import ContextThresholds

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = sorted(DOCS.glob("guide-*.md"))
CLASSES = {each.__name__: each for each in (MemoryEngine, CompactionConfig, ContextThresholds, BaseMemory)}
VALUE = re.compile(r"(?P<value>[\w.]+)(?: (?:s|h|tokens|messages))?")
ANCHOR = re.compile(r'<a id="(?P<anchor>[\w-]+)"></a>`(?P<id>[\w-]+)`')


def rows(page: Path, title: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    text = page.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return lines[2:]


DEFAULTS = [pytest.param(*row[1:], id=f"{page.stem}-{row[0]}") for page in GUIDES for row in rows(page, "Defaults")]


def default_of(where: str) -> Any:
    """What the code has where the table says that it is."""
    head, *path = where.split(".")
    if head == "layer_ttl":
        return MemoryConfig().layer_ttl(Layer(path[0])).total_seconds()
    if head in CLASSES:
        return default_in(CLASSES[head], path)
    value: Any = LaminaConfig()
    for name in (head, *path):
        value = getattr(value, name)
    return value


def default_in(owner: type, path: list[str]) -> Any:
    if issubclass(owner, BaseModel):
        return owner.model_fields[path[0]].default
    method, parameter = path if len(path) == 2 else ("__init__", path[0])
    return inspect.signature(getattr(owner, method)).parameters[parameter].default


def written(value: Any) -> Any:
    """A default as a table writes it."""
    return str(value).lower() if isinstance(value, bool | str) else float(value)


def read(cell: str) -> Any:
    match = VALUE.fullmatch(cell)
    assert match, f"{cell!r} is no single value"
    try:
        return float(match["value"])
    except ValueError:
        return match["value"]


@pytest.mark.parametrize(("told", "where"), DEFAULTS)
def test_every_default_in_a_guide_is_the_codes(told, where):
    assert read(told) == written(default_of(where.strip("`")))


def test_every_guide_has_its_closing_parts():
    assert len(GUIDES) == 3
    assert len(DEFAULTS) > 30
    for page in GUIDES:
        titles = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert titles[-4:] == ["Best practices", "What to avoid", "Defaults", "Troubleshooting"]


def test_the_rows_of_troubles_and_the_checks_are_the_same():
    found = [ANCHOR.fullmatch(row[0]) for page in GUIDES for row in rows(page, "Troubleshooting")]
    assert None not in found
    assert all(match["anchor"] == match["id"] for match in found)
    ids = [match["id"] for match in found]
    assert sorted(ids) == sorted(each.id for each in CHECKS)


def test_every_row_of_troubles_names_a_symptom_and_a_remedy():
    for page in GUIDES:
        for row in rows(page, "Troubleshooting"):
            assert len(row) == 3
            assert all(cell.strip() for cell in row)
            assert row[2].endswith(".")


def test_a_wrong_default_would_be_noticed():
    assert read("513 tokens") != written(default_of("rag.chunk_size"))
    assert read("false") != written(default_of("memory.auto_recall"))
