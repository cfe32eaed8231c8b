"""Databases that several stores share: one opened file, one pool."""
