"""What can be said of the locks without a network: each package by version and hash, and under which licence it comes.

Whether a weakness of one is known, `make audit` asks a service; a workflow does so every week.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ["requirements.lock", "requirements-model.lock", "benchmarks/requirements.lock"]
PINNED = re.compile(r"[A-Za-z0-9._-]+(\[[\w,-]+\])?==[\w.!+-]+( ;[^\\@]+)?( --hash=sha256:[0-9a-f]{64})+")
KNOWN = re.compile(r"\b(MIT|BSD|0BSD|ISC|Apache|PSF|MPL|Zlib|CC0)\b|BSD-[23]-Clause")
REFUSED = re.compile(r"GPL|SSPL|BUSL|Elastic|Commons Clause|Proprietary|NonCommercial", re.IGNORECASE)


def loose(text):
    """The requirements that are not held to a version and to hashes."""
    lines = text.replace("\\\n", " ").splitlines()
    told = [re.sub(r"\s+", " ", line).strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return [line for line in told if not PINNED.fullmatch(line)]


def licence_of(name):
    told = metadata(name)
    given = [told.get("License-Expression"), told.get("License"), *(told.get_all("Classifier") or [])]
    return "; ".join(each for each in given if each and (":" not in each or each.startswith("License")))


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_held_to_a_version_and_to_hashes(lock):
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert text.count("--hash=") > 0
    assert loose(text) == []


def test_what_the_wheel_needs_comes_under_licences_that_let_everybody_use_it():
    licences = {}
    for each in json.loads((ROOT / "sbom.cdx.json").read_text(encoding="utf-8"))["components"]:
        try:
            licences[each["name"]] = licence_of(each["name"])
        except PackageNotFoundError:  # of another platform
            continue
    assert len(licences) > 20
    assert {name: told for name, told in licences.items() if REFUSED.search(told) or not KNOWN.search(told)} == {}


@pytest.mark.parametrize(
    ("line", "is_held"),
    [
        (f"a==1.0 --hash=sha256:{'0' * 64}", True),
        (f"a[b]==1.0 \\\n    --hash=sha256:{'0' * 64} \\\n    --hash=sha256:{'1' * 64}", True),
        ("a==1.0", False),
        (f"a>=1.0 --hash=sha256:{'0' * 64}", False),
        (f"a @ https://example.com/a.whl --hash=sha256:{'0' * 64}", False),
        ("--pre https://example.com", False),
        ("-e .", False),
    ],
)
def test_the_rule_on_locks_sees(line, is_held):
    assert (loose(line) == []) is is_held
