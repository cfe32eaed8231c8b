"""Every example in the documents and the docstrings runs, and prints what it is said to print.

A page is one program: its `python` blocks run in order and share their names. A block marked `text`
right after one is what that block prints; `...` in it stands for anything. Lines of `console` blocks
that begin with `$ lamina` are run, the lines after one are what it prints.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.example import Example
from sybil.parsers.markdown import CodeBlockParser

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = [path for path in sorted((ROOT / "src").rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
SECONDS = 120


def check_output(wanted: str, got: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if not doctest.OutputChecker().check_output(wanted, got, flags):
        pytest.fail(f"expected:\n{wanted}\nprinted:\n{got}")


def run_python(example: Example) -> None:
    printed = io.StringIO()
    namespace = example.namespace
    namespace["__name__"] = "__main__"
    code = compile("\n" * example.line + example.parsed, example.path, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)  # noqa: S102 - that is what running an example means
    namespace["_printed"] = printed.getvalue()


def check_text(example: Example) -> None:
    check_output(example.parsed, example.namespace.pop("_printed", ""))


def run_console(example: Example) -> None:
    for command in example.parsed.split("\n$ "):
        line, _, wanted = command.removeprefix("$ ").partition("\n")
        if line.startswith("lamina"):
            run_command(line, wanted)


def run_command(line: str, wanted: str) -> None:
    scripts = sysconfig.get_path("scripts")
    environment = {**os.environ, "PATH": os.pathsep.join([scripts, os.environ.get("PATH", "")]), "COLUMNS": "100"}
    shell = shutil.which("sh")
    if shell is None:
        pytest.skip("there is no sh to run the commands of this page")
    result = subprocess.run(
        [shell, "-c", line],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    assert result.returncode == 0, f"{line}\n{result.stderr}"
    if wanted.strip():
        check_output(wanted, result.stdout)


def run_page(page: Path) -> None:
    for example in SYBIL.parse(page).examples():
        example.evaluate()


PYTHON = Sybil(parsers=[CodeBlockParser("python", run_python)])
SYBIL = Sybil(
    parsers=[
        CodeBlockParser("python", run_python),
        CodeBlockParser("text", check_text),
        CodeBlockParser("console", run_console),
    ]
)


@pytest.fixture(autouse=True)
def _away_from_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMINA_DATA_DIR", str(tmp_path / "data"))
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_example_of_the_page_runs(page):
    run_page(page)


@pytest.mark.parametrize("source", SOURCES, ids=name_of)
def test_every_example_in_the_docstrings_runs(source):
    parts = source.relative_to(ROOT / "src").with_suffix("").parts
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_pages_hold_examples():
    pages = {name_of(page): len(list(SYBIL.parse(page).examples())) for page in PAGES}
    assert pages["README.md"] >= 2
    assert pages["docs/quickstart.md"] >= 3


def test_the_adapter_of_the_adapters_page_passes_the_contract(tmp_path):
    blocks = [example.parsed for example in PYTHON.parse(ROOT / "docs/adapters.md").examples()]
    wanted = [block for block in blocks if "class DictAdapter" in block or "class TestDictAdapter" in block]
    assert len(wanted) == 2
    (tmp_path / "test_page.py").write_text("\n".join(wanted), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--disable-plugin-autoload",
        "-pasyncio",
        "-phypothesispytest",
        "-o",
        "asyncio_mode=auto",
        "-p",
        "no:cacheprovider",
        "test_page.py",
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert " passed" in result.stdout


@pytest.mark.parametrize(
    "text",
    [
        "```python\n1 / 0\n```\n",
        "```python\nprint('a')\n```\n\n```text\nb\n```\n",
        "```console\n$ lamina no-such-command\n```\n",
    ],
    ids=["an error", "other output", "a failing command"],
)
def test_an_example_that_is_wrong_is_noticed(text, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises((ZeroDivisionError, AssertionError, pytest.fail.Exception)):
        run_page(page)
