"""What the outside must give."""
