"""What becomes of a memory, a message, a document or a pack memory that holds secrets: pure, by a policy."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from lamina.domain.memory import MemoryEntry
from lamina.domain.message import ContentPart, FilePart, ImagePart, Message, OpaquePart, ToolCall
from lamina.domain.pack import Pack, PackMemory
from lamina.domain.secrets import SecretSpan, SecretsPolicy, find_secrets, is_named_secret, masked
from lamina.errors import InvalidInput

__all__ = ["SECRETS_KEY", "Screening"]

SECRETS_KEY: Final = "secrets_found"
"""Under this key of the metadata of what is flagged are the kinds that were found, in order of the alphabet."""

_LONG_NUMBER: Final = 10**12
"""Numbers from here on may be those of cards."""

Part = TypeVar("Part", bound=ContentPart)


class Screening:
    """The screening of one thing under a policy other than `off`. `kinds` are those that were found so far.

    Under `refuse` each method raises `InvalidInput`, which names the field and the kind and never the secret.
    """

    def __init__(self, policy: SecretsPolicy) -> None:
        self._policy = policy
        self.kinds: set[str] = set()

    def entry(self, entry: MemoryEntry) -> MemoryEntry:
        """The memory; what changed its content has no vector."""
        content = self.text("content", entry.content)
        changes: dict[str, Any] = {
            "tags": self._tags(entry.tags),
            "source": None if entry.source is None else self.text("source", entry.source),
            "metadata": self.metadata(entry.metadata),
        }
        if content != entry.content:
            changes |= {"content": content, "embedding": None}
        return entry.replace(**changes | {"metadata": self._noted(changes["metadata"])})

    def pack(self, pack: Pack) -> Pack:
        """The head of a pack."""
        description, tags = self.text("description", pack.description), self._tags(pack.tags)
        return pack.replace(description=description, tags=tags, metadata=self._noted(self.metadata(pack.metadata)))

    def pack_memory(self, memory: PackMemory) -> PackMemory:
        """The memory of a pack; where it comes without its content, the kinds noted earlier stay noted."""
        changes: dict[str, Any] = {
            "tags": self._tags(memory.tags),
            "provenance": None if memory.provenance is None else self.text("provenance", memory.provenance),
            "metadata": self.metadata(memory.metadata),
        }
        if memory.content:
            changes["content"] = self.text("content", memory.content)
        else:
            self.kinds.update(memory.metadata.get(SECRETS_KEY, ()))
        return memory.replace(**changes | {"metadata": self._noted(changes["metadata"])})

    def message(self, message: Message) -> Message:
        """The message: its words, the arguments of its calls, and what stands beside them; no bytes of pictures."""
        content = message.content
        read = self.text("content", content) if isinstance(content, str) else [self._part(part) for part in content]
        calls = [self._call(call) for call in message.tool_calls]
        extra = self.value("extra", message.extra)
        metadata = self.metadata(message.metadata)
        return message.replace(content=read, tool_calls=calls, extra=extra, metadata=self._noted(metadata))

    def document(self, content: str, metadata: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The text and the metadata of a document."""
        text = self.text("content", content)
        return text, self._noted(self.metadata(metadata))

    def metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """The metadata, without the note of an earlier screening."""
        kept = {key: value for key, value in metadata.items() if key != SECRETS_KEY}
        screened: dict[str, Any] = self.value("metadata", kept)
        return screened

    def text(self, field: str, text: str) -> str:
        """The text, with markers in it under `mask`."""
        spans = find_secrets(text)
        return self._found(field, text, spans) if spans else text

    def value(self, field: str, value: Any, name: str = "") -> Any:
        """What JSON can hold, each text of it screened; `name` is the key that a value stands under."""
        match value:
            case str():
                if name and is_named_secret(name, value):
                    return self._found(field, value, [SecretSpan(0, len(value), "password")])
                return self.text(field, value)
            case int() if value >= _LONG_NUMBER:
                shown = self.text(field, str(value))
                return value if shown == str(value) else shown
            case Mapping():
                return self._mapping(field, value)
            case list() | tuple():
                return [self.value(field, each, name) for each in value]
        return value

    def _mapping(self, field: str, values: Mapping[str, Any]) -> dict[str, Any]:
        screened: dict[str, Any] = {}
        for key, value in values.items():
            shown = self.text(field, key)
            place, number = shown, 1
            while place in screened and shown != key:  # two secrets of one kind as keys
                number += 1
                place = f"{shown} {number}"
            screened[place] = self.value(field, value, key)
        return screened

    def _tags(self, tags: list[str]) -> list[str]:
        return list(dict.fromkeys(self.text("tags", tag) for tag in tags))

    def _part(self, part: Part) -> Part:
        changes: dict[str, Any] = {"extra": self.value("extra", part.extra)}
        match part:
            case ImagePart(url=str() as url) | FilePart(url=str() as url) if not url.startswith("data:"):
                changes["url"] = self.text("content", url)
        if not isinstance(part, ImagePart | OpaquePart) and part.text is not None:
            changes["text"] = self.text("content", part.text)
        return dataclasses.replace(part, **changes)

    def _call(self, call: ToolCall) -> ToolCall:
        """The call; arguments that are JSON stay JSON."""
        extra = self.value("extra", call.extra)
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return dataclasses.replace(call, arguments=self.text("tool_calls", call.arguments), extra=extra)
        screened = self.value("tool_calls", arguments)
        text = call.arguments if screened == arguments else json.dumps(screened, ensure_ascii=False)
        return dataclasses.replace(call, arguments=text, extra=extra)

    def _found(self, field: str, text: str, spans: list[SecretSpan]) -> str:
        kinds = {span.kind for span in spans}
        if self._policy is SecretsPolicy.REFUSE:
            problem = f"holds what looks like a secret ({', '.join(sorted(kinds))})"
            raise InvalidInput(field, problem, "Leave it out; or let it be masked: secrets = 'mask'.")
        self.kinds |= kinds
        return masked(text, spans) if self._policy is SecretsPolicy.MASK else text

    def _noted(self, metadata: dict[str, Any]) -> dict[str, Any]:
        if self._policy is SecretsPolicy.FLAG and self.kinds:
            return {**metadata, SECRETS_KEY: sorted(self.kinds)}
        return metadata
