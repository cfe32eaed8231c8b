"""The demo: remember a few conversations, ask ten questions, show why each answer came."""

from lamina.demo.run import DemoReport, demo, run_demo

__all__ = ["DemoReport", "demo", "run_demo"]
