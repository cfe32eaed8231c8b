"""Documents in, the pieces that match out."""
