"""Conversations: threads that never outgrow the window, and short-term memory in token tiers.

Threads (`manager`): `messages` reads what is added, `thread_reading` reads it back, `window` says where a thread is
cut, `folding` folds it, `summarizer` and `rolling` write the summary, `setbacks` counts the writer's failures,
`user_facts` takes facts to memories, `thread_tiers` keeps the tokens.

Sessions (`short_term`, `short_term_stores`): `memory_events` reads what is added, `session_store` keeps it,
`session_reading` reads it back, `context_window` says what fits, `tiering` shortens, `structured` is the summary
and `structured_summarizer` writes it, `callbacks` are a host's own functions.

Both: `tiers` decides, `compaction` puts references in the place of messages and `labels` words them, `expanding` gives
the originals to an agent; `extractive` picks from a text by its `facts`, `transcript` writes messages as text.
"""
