import tempfile
from pathlib import Path
import pytest

@pytest.fixture
def qdrant_folder():
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="lamina-qdrant-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "store"
