"""Whether documents are cut well, and still say what their files say."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from lamina.domain.document import Document
from lamina.kernel.checks.finding import Check, Verdict, fine, warn
from lamina.kernel.checks.subject import Subject

__all__ = ["DOCUMENT_CHECKS"]

_LARGE_CHUNK: Final = 1_000
_MARKDOWN: Final = frozenset({".md", ".markdown", ".mdx"})


def _documents_cut_badly(subject: Subject) -> Verdict:
    documents = subject.kept.chunks.documents
    badly = [each for each in documents if _is_cut_badly(each)]
    if badly:
        problem = f"{len(badly)} of {len(documents)} documents are in large chunks, or Markdown cut by length alone"
        return warn(problem, "Ingest them again with chunk_strategy='recursive' and chunks of about 512 tokens.")
    return fine(f"{len(documents)} documents are cut as they should be")


def _is_cut_badly(document: Document) -> bool:
    size = document.options.get("size")
    by_length = document.options.get("strategy") == "fixed"
    is_markdown = Path(document.source).suffix.lower() in _MARKDOWN
    return (isinstance(size, int) and size > _LARGE_CHUNK and document.chunks > 1) or (by_length and is_markdown)


def _documents_outdated(subject: Subject) -> Verdict:
    documents = subject.kept.chunks.documents
    changed = sum(_has_changed(each) for each in documents)
    if changed:
        problem = f"{changed} of {len(documents)} documents are older than their files"
        return warn(problem, "Ingest the files again; what has not changed costs nothing.")
    return fine("no document is older than a file of its name")


def _has_changed(document: Document) -> bool:
    """Whether the source is a file's name, as seen from here, and that file was changed since it was ingested."""
    try:
        changed = Path(document.source).stat().st_mtime
    except (OSError, ValueError):
        return False
    return datetime.fromtimestamp(changed, UTC) > document.ingested_at


DOCUMENT_CHECKS: Final = (
    Check("documents-cut-badly", _documents_cut_badly),
    Check("documents-outdated", _documents_outdated),
)
