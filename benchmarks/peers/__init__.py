"""Other products that keep memories or vectors and run offline, behind one interface (see `peer.py`).

Their packages are in `benchmarks/requirements.lock`, never among Lamina's own; `make eval` installs them.
"""

from peers.peer import CannotDo, Mode, Peer, Row, Vector
from peers.registry import PEERS, open_peer, peer_class, unavailable

__all__ = ["PEERS", "CannotDo", "Mode", "Peer", "Row", "Vector", "open_peer", "peer_class", "unavailable"]
