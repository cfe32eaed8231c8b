"""How agents are run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lamina.settings.strict_model import Number, StrictModel, WholeNumber

__all__ = ["AgentsConfig"]


class AgentsConfig(StrictModel):
    """Limits of one turn.

    `timeout`, in seconds, is for the context and the answer together; None is no limit. `max_rounds` is how
    often a model with tools is asked in one turn.
    """

    timeout: Annotated[Number, Field(gt=0)] | None = 600.0
    max_rounds: Annotated[WholeNumber, Field(ge=1, le=1_000)] = 20
