"""Storage backends, one file each."""
