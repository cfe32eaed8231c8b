"""What several adapters share: never a backend of its own."""
