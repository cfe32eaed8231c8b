"""Messages as they were added, whatever the token tiers put in their place."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.conversation.compaction import decompress_event
from lamina.domain.message import Message
from lamina.domain.thread import ThreadEvent

__all__ = ["originals"]


def originals(events: Sequence[ThreadEvent]) -> list[Message]:
    """The messages of the events, the compacted ones restored."""
    return [decompress_event(event).message for event in events]
