"""What goes out with the repository speaks of no machine and of no index."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

MACHINE_PATH = re.compile(r"(?<![\w.~$])/(?:root|home|work|Users|mnt|opt)/\w+")
REGISTRY = re.compile(r"pypi\.org|pythonhosted\.org|(?<!\w)--(?:extra-)?index-url|--find-links|file://")
ALLOWED = {
    # what pip-compile is told not to write, and what the rule itself is written in
    "Makefile",
    "tests/house/test_tracked_files.py",
}


def tracked(root):
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        pytest.skip("not a git checkout, so nothing is tracked")
    out = subprocess.run([git, "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
    return [root / name for name in out.decode().split("\0") if name]


def texts(root):
    for path in tracked(root):
        try:
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # a binary file, or one deleted but not yet committed


def test_no_tracked_file_names_a_path_of_a_machine(root):
    found = [(name, match) for name, text in texts(root) if name not in ALLOWED for match in MACHINE_PATH.findall(text)]
    assert found == []


def test_no_tracked_file_names_a_package_index(root):
    found = [(name, match) for name, text in texts(root) if name not in ALLOWED for match in REGISTRY.findall(text)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "found"),
    [("see /home/ann/notes", True), ("in /root/x", True), ("GET /v1/work/items", False), ("src/home/x", False)],
)
def test_the_rule_on_paths_sees(text, found):
    assert bool(MACHINE_PATH.search(text)) is found


@pytest.mark.parametrize(
    ("text", "found"),
    [("--index-url https://x/simple", True), ("https://pypi.org/simple", True), ("--no-emit-index-url", False)],
)
def test_the_rule_on_indexes_sees(text, found):
    assert bool(REGISTRY.search(text)) is found
