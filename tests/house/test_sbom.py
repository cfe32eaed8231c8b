"""The bill of materials: as the lock has it, and inside the wheel where PEP 770 wants it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_component_is_in_the_lock_at_its_version_and_every_dependency_a_component():
    sbom = json.loads((ROOT / "sbom.cdx.json").read_text())
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    lock = (ROOT / "requirements.lock").read_text()
    names = {each["name"] for each in sbom["components"]}
    assert {"pydantic", "numpy", "onnxruntime", "typer"} <= names
    for each in sbom["components"]:
        assert f"\n{each['name']}=={each['version']} " in f"\n{lock}", f"{each['name']}: run `make sbom`"
        hashes = each["hashes"]
        assert hashes
        assert all(f"sha256:{one['content']}" in lock for one in hashes)


def test_the_wheel_brings_it_along(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (inside,) = [name for name in archive.namelist() if "/sboms/" in name]
        assert archive.read(inside) == (ROOT / "sbom.cdx.json").read_bytes()
    assert ".dist-info/sboms/" in inside
