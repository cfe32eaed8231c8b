"""Memory and computed context for LLM agents."""
