"""What reaches an agent, computed for one intent."""
