"""How much each component counts in a recall's score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from lamina.errors import ConfigError
from lamina.settings.strict_model import Number, StrictModel, WholeNumber, unknown_key

__all__ = ["SCORING_PRESETS", "ScoringConfig"]

SCORING_PRESETS: Final[Mapping[str, Mapping[str, float]]] = {
    name: {
        "similarity_weight": similarity,
        "recency_weight": recency,
        "frequency_weight": frequency,
        "relevance_weight": relevance,
        "recency_half_life": half_life,
    }
    for name, (similarity, recency, frequency, relevance, half_life) in {
        "default": (0.45, 0.25, 0.15, 0.15, 336.0),
        "assistant": (0.45, 0.20, 0.15, 0.20, 672.0),
        "news": (0.35, 0.40, 0.10, 0.15, 24.0),
        "support": (0.60, 0.30, 0.00, 0.10, 48.0),
        "knowledge_base": (0.70, 0.05, 0.10, 0.15, 8760.0),
        "evidence": (0.95, 0.00, 0.00, 0.05, 336.0),
    }.items()
}

_TOLERANCE: Final = 0.1
_ROUNDING: Final = 1e-9

Weight = Annotated[Number, Field(ge=0)]


class ScoringConfig(StrictModel):
    """Weights of the four components, and the shapes of recency and frequency.

    The weights are taken as they are, if their sum lies within 1 ± 0.1; weights left out have their
    defaults. `recency_half_life` is in hours. Under the curve `exponential` recency is
    e^(-age / recency_half_life), so it is 0.37 at that age and 0.5 at 0.69 times it; under `half_life`
    it is 0.5 at that age. `frequency_cap` is the number of recalls at which frequency reaches 1.
    The extra key `preset` takes the defaults from one of `SCORING_PRESETS`.
    """

    similarity_weight: Weight = 0.45
    recency_weight: Weight = 0.25
    frequency_weight: Weight = 0.15
    relevance_weight: Weight = 0.15
    recency_half_life: Annotated[Number, Field(gt=0)] = 336.0
    recency_curve: Literal["exponential", "half_life"] = "exponential"
    frequency_cap: Annotated[WholeNumber, Field(ge=1)] = 100

    def __init__(self, /, **data: Any) -> None:
        name = data.pop("preset", None)
        if name is not None:
            data = {**_preset(name), **self.field_names(data)}
        super().__init__(**data)

    @classmethod
    def preset(cls, name: str) -> Self:
        """The weights shipped under this name.

        Raises:
            ConfigError: there is no such preset; the message lists those there are.
        """
        return cls(preset=name)

    def half_life_hours(self) -> float:
        """The age, in hours, at which recency is 0.5 under the chosen curve."""
        return self.recency_half_life * (math.log(2) if self.recency_curve == "exponential" else 1.0)

    @model_validator(mode="after")
    def _check_sum(self) -> Self:
        weights = (self.similarity_weight, self.recency_weight, self.frequency_weight, self.relevance_weight)
        total = math.fsum(weights)
        if total == 0:
            raise ConfigError("weights", "are all zero, so every score would be zero", "Give at least one of them.")
        if abs(total - 1) > _TOLERANCE + _ROUNDING:
            remedy = "Change them so that the sum is about 1 (0.9 to 1.1)."
            raise ConfigError("weights", f"have the sum {total:g}", remedy)
        return self


def _preset(name: object) -> Mapping[str, float]:
    known = {key.replace("_", "-"): values for key, values in SCORING_PRESETS.items()}
    values = known.get(str(name).replace("_", "-"))
    if values is None:
        error = unknown_key(str(name), SCORING_PRESETS)
        raise ConfigError("preset", f"{name!r} is unknown", error.remedy.replace("keys", "presets"))
    return values
