"""What goes into a computed context, and how much of it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from lamina.errors import ConfigError
from lamina.settings.strict_model import Number, StrictModel, WholeNumber

__all__ = ["ContextConfig"]

_GREATEST_LIMIT = 1_000
"""As many as one search of a memory adapter gives."""

Limit = Annotated[WholeNumber, Field(ge=0, le=_GREATEST_LIMIT)]
Share = Annotated[Number, Field(ge=0, le=1)]
Seconds = Annotated[Number, Field(gt=0)]


class ContextConfig(StrictModel):
    """How a context is computed.

    `token_budget` holds where the call names none. The `..._limit`s say how many entries each step
    brings; 0 leaves the step out. `auto_recall` off leaves out memories and preferences alike.
    `min_score` and `min_match` are those of `MemoryEngine.recall`; "auto" leaves out the layers that have
    nothing to do with the goal. `document_min_score` and `pack_min_score` may be "auto" too, and a kernel's are.
    `context_messages` is passed to the conversation as the most messages to show; None leaves that to it.

    `near_duplicate` is how alike two texts must be, as a share of the runs of five characters that they
    have in common, for one to stand for both; None joins only what says the same. Texts that differ
    in a number or a negation are never joined. `near_duplicate_cosine` compares the embeddings too, which
    costs a call of the embedder for texts it has not seen; None, the default, does not.

    `use_packs` asks the source of packs for at most `pack_limit` memories of each of at most `max_packs`
    packs that score `pack_min_score` or more. `step_timeout`, `engine_timeout` (a plug-in engine's
    call) and `dispose_timeout` are in seconds.
    """

    token_budget: Annotated[WholeNumber, Field(ge=1)] = 8_000
    auto_recall: bool = True
    working_limit: Limit = 10
    session_limit: Limit = 20
    longterm_limit: Limit = 10
    organizational_limit: Limit = 5
    global_limit: Limit = 5
    preference_limit: Limit = 20
    min_score: Share | None = None
    min_match: Share | Literal["auto"] | None = None
    document_limit: Limit = 5
    document_min_score: Share | Literal["auto"] = 0.0
    document_neighbors: Annotated[WholeNumber, Field(ge=0, le=10)] = 0
    context_messages: Annotated[WholeNumber, Field(ge=1)] | None = None
    near_duplicate: Annotated[Number, Field(gt=0, le=1)] | None = 0.9
    near_duplicate_cosine: Annotated[Number, Field(gt=0, le=1)] | None = None
    use_packs: bool = False
    max_packs: Annotated[WholeNumber, Field(ge=1)] = 2
    pack_limit: Limit = 5
    pack_min_score: Share | Literal["auto"] = 0.25
    step_timeout: Seconds = 30.0
    engine_timeout: Seconds = 30.0
    dispose_timeout: Seconds = 10.0

    @model_validator(mode="after")
    def _check_duplicates(self) -> Self:
        if self.near_duplicate is not None and self.near_duplicate < 0.5:  # noqa: PLR2004 - half of it is another text
            remedy = "Give 0.5 to 1, or None for equal texts only."
            raise ConfigError("near_duplicate", f"{self.near_duplicate} would join texts that differ", remedy)
        return self
