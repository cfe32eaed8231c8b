"""Agents: definitions, choice, tools."""
