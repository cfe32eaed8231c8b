"""What the words mean: pure values, no I/O."""
