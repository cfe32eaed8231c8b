"""The benchmarks are no package that is installed: their folder is put where modules are looked for."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
