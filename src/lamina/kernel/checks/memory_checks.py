"""Whether memories can be found, and whether they are fit to be."""

from __future__ import annotations

from typing import Final

from lamina.errors import AdapterUnavailable, StoreDamaged
from lamina.kernel.checks.finding import Check, Verdict, fault, fine, warn
from lamina.kernel.checks.subject import Subject
from lamina.kernel.checks.surveying import LONG_CHARS, OLD_AGE

__all__ = ["MEMORY_CHECKS"]

_MANY: Final = 100
_FEW: Final = 5
_SHARE: Final = 0.2
_NAMED: Final = 3


def _database_unusable(subject: Subject) -> Verdict:
    problem = subject.store_problem
    if isinstance(problem, AdapterUnavailable):
        return fault(str(problem), "See that it runs and can be reached, and try again.")
    if isinstance(problem, StoreDamaged):
        return fault(str(problem), "Put a backup in its place.")
    if problem is not None:
        return fault(str(problem), "Correct what the settings say of the place, or of what is kept there.")
    if subject.stock is None:
        return fine("there is no database yet; the first memory makes it")
    if subject.stock.damages:
        return fault("; ".join(subject.stock.damages), "Export what can be read, and import it into a new database.")
    return fine("the stores can be opened and are intact")


def _no_embedder(subject: Subject) -> Verdict:
    stock = subject.kept
    if stock.stats.embedder is not None:
        return fine(f"{stock.stats.embedder} makes the vectors")
    if not stock.embeddable:
        return fine("nothing is embedded, and nothing is there to be")
    problem = f"no embedder is configured: {stock.embeddable} texts are found by their words alone"
    return warn(problem, "Leave `embedding` out for the built-in one, or name one; then run `lamina reembed`.")


def _vectors_missing(subject: Subject) -> Verdict:
    stock = subject.kept
    if stock.stats.embedder is None or stock.stats.reembed_needed:
        return fine("no vector is looked for here")
    memories, chunks = stock.stats.without_embedding, stock.chunks.without_vector
    if memories:
        return fault(f"{_memories(memories)} without a vector", "Run `lamina reembed --missing`.")
    if chunks and stock.chunks.made_by is None:
        return fault(f"{chunks} chunks of documents without a vector", "Call `kernel.rag.reembed_missing()`.")
    return fine("every text has its vector")


def _vectors_of_another_model(subject: Subject) -> Verdict:
    stats, chunks = subject.kept.stats, subject.kept.chunks
    if stats.reembed_needed:
        problem = f"the vectors are of {stats.fingerprint}, not of {stats.embedder}"
        return fault(problem, "Run `lamina reembed`, or configure the former.")
    if chunks.made_by is not None:
        problem = f"the vectors of the documents are of {chunks.made_by}, not of {stats.embedder}"
        return fault(problem, "Call `kernel.rag.reembed()`, or configure the former.")
    return fine("the vectors are the configured embedder's own")


def _owner_without_memories(subject: Subject) -> Verdict:
    owners, default = subject.kept.memories.owners, subject.config.memory.default_owner
    if not owners or owners[default]:
        return fine("the default owner has memories, or nobody has")
    named = ", ".join(repr(owner) for owner, _ in owners.most_common(_NAMED))
    others = "another one has" if len(owners) == 1 else f"{len(owners)} others have"
    problem = f"the default owner {default!r} has no memories; {others} ({named})"
    return warn(problem, "Name the owner in every call, or set memory.default_owner.")


def _namespace_hidden(subject: Subject) -> Verdict:
    memory, namespaces = subject.config.memory, subject.kept.memories.namespaces
    hidden = namespaces.total() - namespaces[memory.default_namespace]
    if memory.strict_namespace and hidden:
        problem = f"{_memories(hidden)} outside {memory.default_namespace!r}, where a recall without a namespace stays"
        return warn(problem, "Name the namespace, or turn strict_namespace off.")
    return fine("a recall without a namespace sees all that it should")


def _memories_faded(subject: Subject) -> Verdict:
    facts = subject.kept.memories
    if facts.faded >= max(_FEW, _SHARE * facts.longterm):
        problem = f"{facts.faded} of {facts.longterm} long-term memories have faded to the floor"
        return warn(problem, "Decay less often or with a factor nearer to 1; store again what still holds.")
    return fine("few or no memories have faded to the floor")


def _never_decayed(subject: Subject) -> Verdict:
    facts = subject.kept.memories
    if facts.old >= _MANY and not facts.decayed:
        problem = f"{facts.old} long-term memories are older than {OLD_AGE.days} days, and none has ever faded"
        return warn(problem, "Run `lamina decay`, or `run_maintenance(decay=True)`, on a schedule.")
    return fine("old memories fade, or there are few")


def _memories_long(subject: Subject) -> Verdict:
    if long := subject.kept.memories.long:
        problem = f"{_memories(long)} with more than {LONG_CHARS:,} characters"
        return warn(problem, "Store one fact each; keep conversations in threads, and documents in the RAG pipeline.")
    return fine("memories are short")


def _packs_damaged(subject: Subject) -> Verdict:
    if damages := subject.kept.pack_damages:
        problem = f"of the packs: {'; '.join(damages)}"
        return fault(problem, "Put a backup in its place, or take what can still be read along by `export_entries`.")
    return fine("the packs are sound, as far as their store can tell")


def _version_one_waiting(subject: Subject) -> Verdict:
    if subject.kept.is_earlier_waiting:
        problem = "memories of version 1 are read where they are: by words alone, and not to be edited"
        return warn(problem, f"Run `lamina migrate-v1 {subject.config.memory.v1_path}`.")
    return fine("no file of version 1 waits to be copied over")


def _memories(number: int) -> str:
    return "1 memory" if number == 1 else f"{number} memories"


MEMORY_CHECKS: Final = (
    Check("database-unusable", _database_unusable, needs_stores=False),
    Check("no-embedder", _no_embedder),
    Check("vectors-missing", _vectors_missing),
    Check("vectors-of-another-model", _vectors_of_another_model),
    Check("owner-without-memories", _owner_without_memories),
    Check("namespace-hidden", _namespace_hidden),
    Check("memories-faded", _memories_faded),
    Check("never-decayed", _never_decayed),
    Check("memories-long", _memories_long),
    Check("packs-damaged", _packs_damaged),
    Check("version-one-waiting", _version_one_waiting),
)
