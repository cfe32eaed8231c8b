"""Adapters with one bug each, and the contract's tests that catch it."""

from mutants import (
    batching,
    changing,
    concurring,
    declaring,
    filtering,
    listing,
    remembering,
    scoping,
    searching,
    storing,
)
from mutants.base import Mutant

__all__ = ["MUTANTS", "Mutant"]

MUTANTS = [
    mutant
    for module in (
        storing,
        scoping,
        filtering,
        searching,
        listing,
        changing,
        batching,
        remembering,
        concurring,
        declaring,
    )
    for mutant in vars(module).values()
    if isinstance(mutant, type) and issubclass(mutant, Mutant) and "caught_by" in vars(mutant)
]
