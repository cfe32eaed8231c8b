"""Every error that Lamina raises on purpose.

    LaminaError
    ├── ConfigError (ValueError)              a setting is wrong, unknown or contradicts another
    ├── InvalidInput (ValueError)             an argument has a value that cannot be taken
    ├── InvalidType (TypeError)               an argument has a type that cannot be taken
    ├── NotFound (LookupError)                what was asked for does not exist in this scope
    │   ├── MemoryNotFound
    │   ├── MessageNotFound
    │   ├── DocumentNotFound
    │   ├── PackNotFound
    │   ├── TokenNotFound
    │   ├── ThreadNotFound (KeyError)
    │   └── EngineNotFound (KeyError)
    ├── Conflict                              somebody else changed or took it first
    │   └── PackExists                        a pack of this name is there already
    ├── ScopeError (PermissionError)          the call reaches outside its scope
    ├── ThreadArchivedError                   an archived thread takes no messages
    ├── ContextOverflowError                  a context is above the hard limit
    ├── NoModelConfiguredError                the call needs a language model, and there is none
    ├── AskError                              an intent failed
    ├── NotStarted (RuntimeError)             what is asked for is not open
    ├── Unsupported                           a backend did not declare what the call needs
    ├── MissingExtra (ImportError)            an optional dependency is not installed
    ├── AdapterError                          a storage backend failed
    │   ├── AdapterUnavailable                it cannot be reached now; trying again may help
    │   └── StoreDamaged                      its data cannot be read as ours
    └── ProviderError                         an embedder or a language model failed
        ├── ProviderUnavailable               it cannot be reached now; trying again may help
        ├── EmbeddingDimensionError           a vector has the wrong length
        └── EmbeddingFingerprintError         the store's vectors come from another model

One more stands beside the code that alone raises it:

    LaminaError
    └── lamina.importers.ndjson.BadLines (ValueError)    lines of an import cannot be read

Each keeps its facts as attributes and builds its sentence in `__str__`.
"""

from __future__ import annotations

__all__ = [
    "AdapterError",
    "AdapterUnavailable",
    "AskError",
    "ConfigError",
    "Conflict",
    "ContextOverflowError",
    "DocumentNotFound",
    "EmbeddingDimensionError",
    "EmbeddingFingerprintError",
    "EngineNotFound",
    "InvalidInput",
    "InvalidType",
    "LaminaError",
    "MemoryNotFound",
    "MessageNotFound",
    "MissingExtra",
    "NoModelConfiguredError",
    "NotFound",
    "NotStarted",
    "PackExists",
    "PackNotFound",
    "ProviderError",
    "ProviderUnavailable",
    "ScopeError",
    "StoreDamaged",
    "ThreadArchivedError",
    "ThreadNotFound",
    "TokenNotFound",
    "Unsupported",
]


class LaminaError(Exception):
    """Base of every error that Lamina raises on purpose."""


class _FieldError(LaminaError):
    """A sentence about one field: which one, what is wrong with it, what to do."""

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(field, problem, remedy)
        self.field = field
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}. {self.remedy}"


class ConfigError(_FieldError, ValueError):
    """A setting is wrong, unknown, or contradicts another one."""


class InvalidInput(_FieldError, ValueError):
    """An argument has a value that cannot be taken; nothing was written."""


class InvalidType(_FieldError, TypeError):
    """An argument has a type that cannot be taken; nothing was written."""


class NotFound(LaminaError, LookupError):
    """What was asked for does not exist in this scope."""

    kind = "thing"

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id

    def __str__(self) -> str:
        return f"No {self.kind} here has the id {self.id!r}."


class MemoryNotFound(NotFound):
    """No memory in this scope has the id."""

    kind = "memory"


class MessageNotFound(NotFound):
    """No message of this thread or session has the id."""

    kind = "message"


class DocumentNotFound(NotFound):
    """No document in this scope has the id."""

    kind = "document"


class PackNotFound(NotFound):
    """No pack in this scope has the name or the id."""

    kind = "pack"

    def __str__(self) -> str:
        return f"No pack here has the name or the id {self.id!r}."


class ThreadNotFound(NotFound, KeyError):
    """No thread in this scope has the id."""

    kind = "thread"


class TokenNotFound(NotFound):
    """No API token of this tenant has the id, or it is revoked already."""

    kind = "token"

    def __str__(self) -> str:
        return f"No API token here has the id {self.id!r}, or it is revoked already."


class EngineNotFound(NotFound, KeyError):
    """No context engine of this id is registered."""

    kind = "context engine"


class Conflict(LaminaError):
    """Somebody else changed or took it first; read it again and decide anew."""

    def __init__(
        self, subject: str, problem: str, remedy: str = "Read it again and repeat the change on what you find."
    ) -> None:
        super().__init__(subject, problem, remedy)
        self.subject = subject
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.subject}: {self.problem}. {self.remedy}"


class PackExists(Conflict):
    """A pack of this name is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The pack {name!r}", "is there already", "Choose another name, or add to the one there is.")
        self.name = name


class ScopeError(LaminaError, PermissionError):
    """The call reaches outside the tenant, owner or namespace that it was bound to."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


class ThreadArchivedError(LaminaError):
    """An archived thread takes no messages; nothing was written."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id

    def __str__(self) -> str:
        return f"The thread {self.id!r} is archived. Call unarchive first, or use another thread."


class ContextOverflowError(LaminaError):
    """A context is above the hard limit, after all that may be shortened was."""

    def __init__(self, tokens: int, limit: int) -> None:
        super().__init__(tokens, limit)
        self.tokens = tokens
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"The context has {self.tokens} tokens, and the hard limit is {self.limit}. "
            "Pass max_tokens to get as much of it as fits, or raise hard_limit."
        )


class NoModelConfiguredError(LaminaError):
    """The call needs a language model, and none is configured."""

    def __init__(self, feature: str) -> None:
        super().__init__(feature)
        self.feature = feature

    def __str__(self) -> str:
        return f"{self.feature} needs a language model. Configure one: model=..., or ModelRouter(complete=...)."


class AskError(LaminaError):
    """An intent failed; `result` is its `IntentResult`."""

    def __init__(self, result: object, problem: str) -> None:
        super().__init__(result, problem)
        self.result = result
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


class NotStarted(LaminaError, RuntimeError):
    """What is asked for is not open yet, or no longer."""

    def __init__(self, subject: str, remedy: str) -> None:
        super().__init__(subject, remedy)
        self.subject = subject
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.subject} is not started. {self.remedy}"


class Unsupported(LaminaError):
    """A backend did not declare what the call needs, so the call was refused."""

    def __init__(self, subject: str, capability: str, remedy: str = "") -> None:
        super().__init__(subject, capability, remedy)
        self.subject = subject
        self.capability = capability
        self.remedy = remedy

    def __str__(self) -> str:
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{self.subject} does not support {self.capability}.{remedy}"


class MissingExtra(LaminaError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(feature, extra)
        self.feature = feature
        self.extra = extra

    def __str__(self) -> str:
        return f"{self.feature} needs an extra: pip install 'lamina[{self.extra}]'"


class AdapterError(LaminaError):
    """A storage backend failed; what it reported is the cause of this error."""

    def __init__(self, adapter: str, problem: str, remedy: str = "") -> None:
        super().__init__(adapter, problem, remedy)
        self.adapter = adapter
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"The {self.adapter} backend failed: {self.problem}.{remedy}"


class AdapterUnavailable(AdapterError):
    """The backend cannot be reached now (locked, down, timed out); trying again may help."""


class StoreDamaged(AdapterError):
    """The data cannot be read as ours: damaged, foreign, or written by a newer Lamina."""


class ProviderError(LaminaError):
    """An embedder or a language model failed; what it reported is the cause of this error."""

    def __init__(self, provider: str, problem: str, remedy: str = "") -> None:
        super().__init__(provider, problem, remedy)
        self.provider = provider
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{self.provider} failed: {self.problem}.{remedy}"


class ProviderUnavailable(ProviderError):
    """The provider cannot be reached now (down, timed out, rate limited); trying again may help."""


class EmbeddingDimensionError(ProviderError, ValueError):
    """A vector has another length than the ones beside it."""

    def __init__(self, expected: int, actual: int, *, remedy: str = "") -> None:
        super().__init__("The embedder", f"a vector has {actual} dimensions, not {expected}", remedy)
        self.expected = expected
        self.actual = actual


class EmbeddingFingerprintError(ProviderError):
    """The store's vectors come from another model than the one configured."""

    def __init__(self, stored: str, configured: str) -> None:
        problem = f"the store holds vectors of {stored}, but the configured embedder is {configured}"
        remedy = (
            "Either configure the stored model again, or run `lamina reembed` (`await engine.reembed()`) once; "
            "keyword recall works meanwhile."
        )
        super().__init__("The embedder", problem, remedy)
        self.stored = stored
        self.configured = configured

    def __str__(self) -> str:
        return f"{self.problem[0].upper()}{self.problem[1:]}. {self.remedy}"
