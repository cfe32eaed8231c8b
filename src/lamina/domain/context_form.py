"""In which shapes a context is sent, and what its tokens are spent on."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Form", "TokenSource"]


class Form(StrEnum):
    """The shape in which a context is given to a model."""

    PLAIN = "plain"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class TokenSource(StrEnum):
    """What the tokens of a context are spent on, in the order in which it is sent."""

    TOOLS = "tools"
    INSTRUCTIONS = "instructions"
    PROFILE = "profile"
    PREFERENCES = "preferences"
    KNOWLEDGE = "knowledge"
    PACKS = "packs"
    LONGTERM = "longterm"
    SESSION = "session"
    WORKING = "working"
    DOCUMENTS = "documents"
    ENGINE = "engine"
    """What a plug-in engine retrieved."""
    SUMMARY = "summary"
    CONVERSATION = "conversation"
    GOAL = "goal"
    LABELS = "labels"
    """The marks around the parts."""
    RESERVED = "reserved"
