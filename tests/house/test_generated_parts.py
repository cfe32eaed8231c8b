"""What is computed stays computed, and every change note reaches the changelog."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

NOTE = re.compile(r"[a-z0-9-]+\.(?:added|changed|deprecated|removed|fixed|security)\.md")


def generate(root, *args):
    return subprocess.run(
        [sys.executable, "scripts/generate.py", *args], cwd=root, capture_output=True, text=True, check=False
    )


def test_changelog_and_capability_matrix_are_up_to_date(root):
    result = generate(root, "--check")
    assert (result.stderr, result.returncode) == ("", 0)


def test_a_note_that_is_not_in_the_changelog_is_reported_and_then_collected(root, tmp_path):
    for name in ("scripts", "changes", "docs", "tests/cases"):
        shutil.copytree(root / name, tmp_path / name)
    shutil.copy(root / "CHANGELOG.md", tmp_path)
    (tmp_path / "changes/zebra.fixed.md").write_text("Zebras are recalled\nwith their stripes.\n", encoding="utf-8")
    checked = generate(tmp_path, "--check")
    assert checked.returncode == 1
    assert "CHANGELOG.md is out of date" in checked.stderr
    assert generate(tmp_path).returncode == 0
    assert "- Zebras are recalled\n  with their stripes." in (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    assert generate(tmp_path, "--check").returncode == 0


def test_every_note_has_a_kind_and_is_no_list(root):
    notes = [path for path in (root / "changes").iterdir() if path.name != "README.md"]
    assert [path.name for path in notes if NOTE.fullmatch(path.name) is None] == []
    assert [path.name for path in notes if path.read_text(encoding="utf-8").lstrip().startswith(("-", "#"))] == []
