"""Retrieval evaluations that a user can rerun."""
