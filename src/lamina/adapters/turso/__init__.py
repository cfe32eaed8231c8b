"""Turso and libSQL: a remote database over HTTP, an embedded replica of one, or a local file."""

from __future__ import annotations

from lamina.adapters.turso.adapter import TursoAdapter

__all__ = ["TursoAdapter"]
