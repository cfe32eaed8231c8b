"""Conversations: threads that never outgrow the window, and short-term memory in token tiers."""
