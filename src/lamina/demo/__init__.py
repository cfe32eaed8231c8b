"""The demo and its texts."""
