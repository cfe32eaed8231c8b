"""The peers by name, and whether each can run here."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final

from peers.peer import Peer

PEERS: Final = {
    "mem0-qdrant": ("peers.mem0_memory", "Mem0Qdrant"),
    "mem0-faiss": ("peers.mem0_memory", "Mem0Faiss"),
    "mem0-chroma": ("peers.mem0_memory", "Mem0Chroma"),
    "langgraph-memory": ("peers.langgraph_store", "LangGraphMemory"),
    "langgraph-sqlite": ("peers.langgraph_store", "LangGraphSqlite"),
    "engrava": ("peers.engrava_store", "Engrava"),
    "chroma": ("peers.chroma_collection", "Chroma"),
    "lancedb": ("peers.lance_table", "LanceDB"),
    "sqlite-vec": ("peers.vec0_table", "SqliteVec"),
    "faiss-flat": ("peers.vector_indexes", "FaissFlat"),
    "usearch": ("peers.vector_indexes", "Usearch"),
    "hnswlib": ("peers.vector_indexes", "Hnswlib"),
}
"""The modules and classes; none is imported before it is asked for."""


def peer_class(name: str) -> type[Peer]:
    """The class, its product imported.

    Raises:
        KeyError: there is no such peer.
        ImportError: its product is not installed, or does not load here; the message says why.
    """
    module, attribute = PEERS[name]
    found: type[Peer] = getattr(importlib.import_module(module), attribute)
    try:
        found.load()
    except ImportError:
        raise
    except Exception as error:  # whatever its import runs into is why it cannot run here
        raise ImportError(f"{type(error).__name__}: {error}") from error
    return found


def open_peer(name: str, folder: Path, dimensions: int) -> Peer:
    """Open the peer's store in a folder, which is made if need be.

    Raises:
        KeyError: there is no such peer.
        ImportError: its product is not installed, or does not load here.
    """
    peer = peer_class(name)()
    folder.mkdir(parents=True, exist_ok=True)
    peer.open(folder, dimensions)
    return peer


def unavailable() -> dict[str, str]:
    """The peers that cannot run here, and why not."""
    reasons = {}
    for name in PEERS:
        try:
            peer_class(name)
        except ImportError as error:
            reasons[name] = str(error)
    return reasons
