"""The contract that every adapter passes, and deterministic stand-ins."""
