"""State stores: threads, messages, summaries, heads of documents."""
