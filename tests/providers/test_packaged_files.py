from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lamina.errors import ProviderError
from lamina.providers.packaged_files import PackagedFiles

CONTENT = b"weights"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def files(distribution: str = "pytest", folder: str = "pytest", name: str = "model.bin") -> PackagedFiles:
    return PackagedFiles(distribution=distribution, folder=folder, sha256={name: DIGEST})


def test_a_file_with_the_reviewed_digest_is_read(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(CONTENT)
    assert files().read("It", tmp_path) == {"model.bin": CONTENT}


def test_one_changed_bit_is_refused_and_the_file_named(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"weightt")
    with pytest.raises(ProviderError, match=r"model\.bin is not the reviewed one.*pytest"):
        files().read("It", tmp_path)


def test_a_missing_file_or_distribution_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match=r"model\.bin cannot be read"):
        files().read("It", tmp_path)
    with pytest.raises(ProviderError, match=r"model\.bin cannot be read"):
        files().read("It")
    with pytest.raises(ProviderError, match="no-such-distribution is not installed"):
        files(distribution="no-such-distribution").read("It")
