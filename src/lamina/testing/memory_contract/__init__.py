"""The contract of a memory adapter, by theme; `contract` puts it together."""
