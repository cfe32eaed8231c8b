"""Prints the path of the newest stable CPython >= 3.11 on this machine, found on PATH or under pyenv."""

import os
import re
import subprocess
import sys
from pathlib import Path


def candidates():
    yield sys.executable
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield from (
            str(path) for path in Path(folder).glob("python3.[0-9]*") if re.fullmatch(r"python3\.\d+", path.name)
        )
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from (str(path) for path in root.glob("versions/3.*/bin/python3"))


def version_of(python):
    """(3, 13, 0) if the interpreter starts, is a release and can make virtual environments, else None."""
    code = "import sys, venv, ensurepip; print(*sys.version_info[:4])"
    result = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return None
    *numbers, level = result.stdout.split()
    return tuple(map(int, numbers)) if level == "final" else None


found = [(version, python) for python in candidates() if (version := version_of(python))]
print(max(found)[1])
