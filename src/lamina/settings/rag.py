"""How documents are chunked and found."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from lamina.domain.recall import SearchMode
from lamina.domain.secrets import SecretsPolicy
from lamina.errors import ConfigError
from lamina.settings.reranking import reranker_setting
from lamina.settings.strict_model import Number, StrictModel, WholeNumber

__all__ = ["RagConfig"]

MAX_TOKENS: Final = 65_536
_MEBIBYTE: Final = 1024 * 1024


class RagConfig(StrictModel):
    """Defaults of `RagPipeline`; `chunk_size` and `chunk_overlap` in tokens, `max_bytes` of a document as UTF-8.

    `top_k` and `min_score` are for callers that search on behalf of others, such as the kernel: there a
    chunk below `min_score` does not match. None means "auto": none if nothing matches as far as the embedder can
    tell, and without an embedder whatever shares a word. `RagPipeline.retrieve` has defaults of its own. `rerank` is
    what reads the best chunks again, together with the query, as in `MemoryConfig`; the scores are then blended ones.
    A file that takes longer than `convert_seconds` to be converted to text is refused.
    `secrets` is as in `MemoryConfig`: None is off, or in a kernel what the memory block says.
    """

    chunk_strategy: Literal["recursive", "paragraph", "sentence", "fixed"] = "recursive"
    chunk_size: Annotated[WholeNumber, Field(ge=1, le=MAX_TOKENS)] = 512
    chunk_overlap: Annotated[WholeNumber, Field(ge=0, le=MAX_TOKENS)] = 50
    top_k: Annotated[WholeNumber, Field(ge=1, le=1000)] = 5
    min_score: Annotated[Number, Field(ge=0, le=1)] | None = None
    search_mode: SearchMode = SearchMode.HYBRID
    rerank: Annotated[Any, AfterValidator(reranker_setting)] = None
    max_bytes: Annotated[WholeNumber, Field(ge=1)] = 64 * _MEBIBYTE
    convert_seconds: Annotated[Number, Field(gt=0)] = 60.0
    secrets: SecretsPolicy | None = None

    @model_validator(mode="after")
    def _check_overlap(self) -> Self:
        if self.chunk_overlap >= self.chunk_size:
            problem = f"{self.chunk_overlap} is not below the chunk size {self.chunk_size}"
            raise ConfigError("chunk_overlap", problem, "Give a smaller overlap, or 0 for none.")
        return self
