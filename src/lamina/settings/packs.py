"""How Context Packs are kept and found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from lamina.domain.pack import PackType
from lamina.domain.pack_decay import DEFAULT_STEPS, Decay
from lamina.domain.recall import SearchMode
from lamina.domain.secrets import SecretsPolicy
from lamina.errors import ConfigError, InvalidInput
from lamina.settings.strict_model import Number, StrictModel, WholeNumber

__all__ = ["DecayConfig", "PacksConfig"]

_LARGEST: Final = 1_000


class DecayConfig(StrictModel):
    """How memories fade: the unit of idle time in `hours`, and after how many units each step down comes."""

    hours: Annotated[Number, Field(gt=0)]
    steps: tuple[Number, ...] = DEFAULT_STEPS

    def made(self) -> Decay:
        """The decay that these settings describe.

        Raises:
            ConfigError: there can be no such decay.
        """
        try:
            return Decay(timedelta(hours=self.hours), tuple(float(each) for each in self.steps))
        except InvalidInput as error:
            raise ConfigError(error.field.partition(".")[2], error.problem, error.remedy) from error
        except OverflowError as error:
            raise ConfigError("hours", "is more than a time can be", "Give at most 100 years.") from error


def _decays(given: Any) -> Any:
    """Each override read and checked, where the mapping is one at all."""
    if not isinstance(given, Mapping):
        return given
    read = {}
    for name, value in given.items():
        if name not in set(PackType):
            raise ConfigError(str(name), "is no type of pack", f"Use one of: {', '.join(PackType)}.")
        config = value if isinstance(value, DecayConfig) else DecayConfig(**value)
        config.made()
        read[PackType(name)] = config
    return read


class PacksConfig(StrictModel):
    """Defaults and limits of `ContextPacks`.

    `table` is the collection of the memory adapter that search runs over; by default `lamina_packs`, or what the
    memories' own is called with `_packs` behind it. `decay` says for a type of pack how new ones fade that say
    nothing of their own: `{"project": {"hours": 24, "steps": [1, 2, 4, 8]}}`. `limit` is how many memories a
    retrieval gives that names no limit, `max_limit` how many it may ask for at most, and so how many it can
    bring back to the full tier at once. `min_similarity` is from where a memory has to do with a question that
    names no `min_score`; None means what fits the embedder and the question. `reducer`
    says what makes the texts of memories that fade: rules (`extractive`), or the model that summarises threads
    (`model`). `secrets` is as in `MemoryConfig`: None is off, or in a kernel what the memory block says.
    """

    table: Annotated[str, Field(min_length=1)] | None = None
    search_mode: SearchMode = SearchMode.HYBRID
    reducer: Literal["extractive", "model"] = "extractive"
    limit: Annotated[WholeNumber, Field(ge=1, le=_LARGEST)] = 10
    max_limit: Annotated[WholeNumber, Field(ge=1, le=_LARGEST)] = _LARGEST
    min_similarity: Annotated[Number, Field(ge=0, le=1)] | None = None
    decay: Annotated[dict[PackType, DecayConfig], BeforeValidator(_decays)] = {}  # noqa: RUF012 - pydantic copies it
    secrets: SecretsPolicy | None = None

    def decay_of(self, type: PackType) -> Decay | None:
        """How a new pack of the type fades; None for the type's own way."""
        config = self.decay.get(type)
        return None if config is None else config.made()
