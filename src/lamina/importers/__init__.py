"""Other people's formats in, ours out."""
