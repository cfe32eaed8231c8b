"""The client of the HTTP server: the verbs of the library, over the network.

    async with LaminaClient("http://127.0.0.1:8765", token=token, owner="ann") as client:
        await client.memories.store("Prefers green tea.")
        await client.memories.recall("Which tea?")

Errors are those of the library. `SyncLaminaClient` is the same without `await`; `RemoteMemory` is short-term memory
whose sessions are kept by a server.
"""

from __future__ import annotations

from lamina.client.blocking import SyncLaminaClient, SyncRemoteMemory
from lamina.client.client import LaminaClient
from lamina.client.remote_memory import RemoteMemory

__all__ = ["LaminaClient", "RemoteMemory", "SyncLaminaClient", "SyncRemoteMemory"]
