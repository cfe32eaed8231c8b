"""Writes sbom.cdx.json: what the wheel needs at run time, at the versions and hashes of the lock, as CycloneDX.

Which packages those are is asked of the environment that this runs in, which `make` makes from the lock.
"""

import json
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
SBOM = ROOT / "sbom.cdx.json"


def locked():
    """Version and hashes by name."""
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        if pinned := re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)", line):
            found[canonicalize_name(pinned[1])] = (pinned[2], sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", line)))
    return found


def needed(lines):
    """The names that these requirements, and theirs in turn, bring on this platform."""
    names, todo = set(), [Requirement(line) for line in lines]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if name in names:
            continue
        names.add(name)
        try:
            inner = [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:  # of another platform
            continue
        extras = {"", *requirement.extras}
        todo += [
            each for each in inner if not each.marker or any(each.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return names


def bill():
    """The document, the same for the same lock."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lock = locked()
    components = []
    for name in sorted(needed(project["dependencies"]) & lock.keys()):
        version, hashes = lock[name]
        purl = f"pkg:pypi/{name}@{version}"
        found = [{"alg": "SHA-256", "content": each} for each in hashes]  # of each file that the lock allows
        components.append(
            {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "hashes": found}
        )
    about = {"component": {"type": "library", "bom-ref": "lamina", "name": "lamina", "purl": "pkg:pypi/lamina"}}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": about,
        "components": components,
        "dependencies": [{"ref": "lamina", "dependsOn": [each["bom-ref"] for each in components]}],
    }


def main():
    """Write it; with --check only say whether it is up to date."""
    text = json.dumps(bill(), indent=1) + "\n"
    if "--check" in sys.argv:
        sys.exit(None if SBOM.read_text() == text else "sbom.cdx.json is out of date: run `make sbom`")
    SBOM.write_text(text)


if __name__ == "__main__":
    main()
