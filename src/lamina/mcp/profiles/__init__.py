"""Sets of tools; a launch picks one, because every tool costs tokens in each conversation."""
