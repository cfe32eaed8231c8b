"""Embedders and language models."""
