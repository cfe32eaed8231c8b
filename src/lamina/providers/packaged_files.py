"""Files of an installed distribution as data.

They are found and read without importing the distribution, and checked against their SHA-256.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from lamina.errors import ProviderError

__all__ = ["PackagedFiles"]


@dataclass(frozen=True, slots=True)
class PackagedFiles:
    """Which files a model needs.

    `folder` is relative to where the distribution is installed; `sha256` maps the names in it to hex digests.
    """

    distribution: str
    folder: str
    sha256: Mapping[str, str]

    def read(self, feature: str, root: Path | None = None) -> dict[str, bytes]:
        """The contents of all files by name, from `root` if given, else from the distribution.

        Raises:
            ProviderError: the distribution or a file is missing, or a file is not the one that was reviewed; the
                message names it.
        """
        folder = self._located(feature) if root is None else root
        contents = {}
        for name, digest in self.sha256.items():
            path = folder / name
            try:
                content = path.read_bytes()
            except OSError as error:
                raise ProviderError(feature, f"its file {path} cannot be read", self._remedy()) from error
            if not hmac.compare_digest(hashlib.sha256(content).hexdigest(), digest):
                raise ProviderError(feature, f"its file {path} is not the reviewed one (SHA-256)", self._remedy())
            contents[name] = content
        return contents

    def _located(self, feature: str) -> Path:
        try:
            return Path(str(distribution(self.distribution).locate_file(self.folder)))
        except PackageNotFoundError as error:
            raise ProviderError(feature, f"{self.distribution} is not installed", self._remedy()) from error

    def _remedy(self) -> str:
        return f"Install the version of {self.distribution} that Lamina names as its dependency again."
