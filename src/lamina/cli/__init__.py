"""The command line: parse, call the engine, present. Heavy modules are imported by the command that needs them."""

from lamina.cli.entry import main

__all__ = ["main"]
