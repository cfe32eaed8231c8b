"""Context Packs: named, typed containers of memories that are found in two phases, fade, and come back whole."""
