"""The kernel: takes intents, computes their context, lets an agent answer, keeps what was said."""

__all__: list[str] = []
