"""Agents: their definitions, the tools they may call, and which of them serves a goal."""

from lamina.agents.answer import AgentAnswer, Executor
from lamina.agents.capability import AgentDefinition, Capability
from lamina.agents.registry import ASSISTANT, Agent, AgentRegistry, define_agent
from lamina.agents.tool_context import ThreadView, ToolContext
from lamina.agents.tools import Tool

__all__ = [
    "ASSISTANT",
    "Agent",
    "AgentAnswer",
    "AgentDefinition",
    "AgentRegistry",
    "Capability",
    "Executor",
    "ThreadView",
    "Tool",
    "ToolContext",
    "define_agent",
]
