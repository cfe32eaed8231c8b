"""The state of a kernel and its stores, examined: a check for every row of the guides' tables of troubles."""

from lamina.kernel.checks.examining import CHECKS, examine, examine_open
from lamina.kernel.checks.finding import Check, Finding, Status

__all__ = ["CHECKS", "Check", "Finding", "Status", "examine", "examine_open"]
