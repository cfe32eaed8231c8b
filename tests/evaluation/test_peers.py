"""Every peer keeps to the one interface. A peer whose package is not installed is skipped, with the reason."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("benchmarks")

NAMES = (
    "mem0-qdrant mem0-faiss mem0-chroma langgraph-memory langgraph-sqlite engrava chroma lancedb sqlite-vec faiss-flat"
    " usearch hnswlib"
).split()
OWNERS = ("mira", "o'neil.j")
LIMIT = 5


@pytest.fixture
def rows():
    """Of two owners, alternating; one text, and so its vector, stands twice."""
    from peers import Row

    vectors = np.abs(np.random.default_rng(0).standard_normal((40, 16))).astype("float32")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[6] = vectors[4]
    texts = [f"kettle number{4 if n == 6 else n}" for n in range(40)]
    return [Row(f"m{n}", OWNERS[n % 2], texts[n], vectors[n]) for n in range(40)]


def nearest(rows, vector):
    return [row.id for row in sorted(rows, key=lambda row: -float(row.vector @ vector))[:LIMIT]]


def test_the_names_are_those_of_the_registry():
    from peers import PEERS

    assert list(PEERS) == NAMES


@pytest.mark.filterwarnings("ignore")  # theirs
@pytest.mark.parametrize("name", NAMES)
def test_a_peer_finds_the_nearest_of_an_owner_or_of_all_and_refuses_what_it_cannot_do(name, rows, tmp_path):
    from peers import CannotDo, open_peer, peer_class

    try:
        kind = peer_class(name)
    except ImportError as error:
        pytest.skip(f"{name}: {error}")
    peer = open_peer(name, tmp_path / "store", 16)
    peer.fill(rows[:30])
    peer.fill(rows[30:39])
    peer.add(rows[39])
    if kind.persistent:
        peer.close()
        peer = open_peer(name, tmp_path / "store", 16)
    for owner in (*OWNERS, None):
        vector, expected = (
            rows[39].vector,
            nearest([row for row in rows if owner in {row.owner, None}], rows[39].vector),
        )
        for mode in ("vector", "keyword", "hybrid"):
            if mode in kind.modes and (kind.unscoped if owner is None else kind.scoped):
                found = peer.search(vector, " kettle number39?", owner=owner, limit=LIMIT, mode=mode)
                assert (found == expected) if mode == "vector" else (len(set(found)) == len(found) > 0)
                assert {row.owner for row in rows if row.id in found} <= ({owner} if owner else set(OWNERS))
            else:
                with pytest.raises(CannotDo):
                    peer.search(vector, "kettle", owner=owner, limit=LIMIT, mode=mode)
    peer.close()
