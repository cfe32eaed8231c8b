from __future__ import annotations

import json
import re

import pytest

from lamina.domain.document import RagChunk
from lamina.errors import InvalidInput
from lamina.evaluation.chunking import (
    ChunkFigures,
    evaluate_chunks,
    evaluate_tree,
    fences,
    measure_speed,
    table_rows,
)
from lamina.evaluation.document_trees import DocumentTree, load_trees
from lamina.rag.chunking import ChunkOptions

FENCE = "```py\nx = 1\n\ny = 2\n```"
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"
PAGE = f"# Ferries\n\nThey leave at nine.\n\n{FENCE}\n\n## Fares\n\n{TABLE}\n\nThat is all.\n"


def chunk(text, start, end, content=None):
    return RagChunk("c", text[start:end] if content is None else content, "s", 1.0, "d", 0, start, end)


def found(text, *chunks, size=100):
    figures = ChunkFigures("t")
    evaluate_chunks(text, chunks, size, lambda part: len(part.split()), into=figures)
    return figures


def spans(text, pairs):
    return [text[start:end] for start, end in pairs]


def test_fences_are_found_in_quotes_lists_and_components_up_to_their_own_end():
    text = (
        f"{FENCE}\n\n> ```\n> quoted\n> ```\n\n- ~~~~ md\n  ```\n  inner\n  ```\n  ~~~~\n"
        "<Step>\n      ```js\n      f()\n      ```\n</Step>\n`` `inline` ``` x\n```never closed\n"
    )
    assert spans(text, fences(text)) == [
        FENCE,
        "```\n> quoted\n> ```",
        "~~~~ md\n  ```\n  inner\n  ```\n  ~~~~",
        "```js\n      f()\n      ```",
    ]


def test_rows_of_tables_are_found_and_none_in_a_fence():
    text = f"a | b\n\n{TABLE}\n\n```\n{TABLE}\n```\nx | y\n--|--\n1 | 2\nafter\n3 | 4\n"
    rows = spans(text, table_rows(text, list(fences(text))))
    assert rows == [*TABLE.split("\n"), "x | y", "--|--", "1 | 2"]


def test_chunks_that_are_as_promised_are_said_to_be():
    middle = PAGE.index("## Fares")
    figures = found(PAGE, chunk(PAGE, 0, middle), chunk(PAGE, middle, len(PAGE)))
    assert figures.kept
    assert (figures.documents, figures.chunks, figures.characters) == (1, 2, len(PAGE))
    assert (figures.fences, figures.rows) == (1, 4)
    assert figures.tokens_per_chunk == len(PAGE.split()) / 2


@pytest.mark.parametrize(
    ("break_it", "field"),
    [
        (lambda text: [chunk(text, 0, len(text), text.upper())], "inexact"),
        (lambda text: [chunk(text, 1, len(text), text[: len(text) - 1])], "inexact"),
        (lambda text: [chunk(text, 2, len(text))], "lost"),
        (lambda text: [chunk(text, 0, len(text) - 5)], "lost"),
        (lambda text: [chunk(text, 0, 9), chunk(text, 19, len(text))], "lost"),
        (lambda text: [chunk(text, 0, at := text.index("y = 2")), chunk(text, at, len(text))], "fences_split"),
        (lambda text: [chunk(text, 0, len(text)), chunk(text, text.index("x = 1"), len(text))], "fences_split"),
        (lambda text: [chunk(text, 0, at := text.index("2 |")), chunk(text, at, len(text))], "rows_split"),
    ],
)
def test_every_way_of_breaking_a_promise_is_found_out(break_it, field):
    figures = found(PAGE, *break_it(PAGE))
    assert getattr(figures, field) > 0
    assert not figures.kept


def test_a_chunk_above_the_size_is_found_out_and_what_does_not_fit_may_be_split():
    at = PAGE.index("y = 2")
    figures = found(PAGE, chunk(PAGE, 0, at), chunk(PAGE, at, len(PAGE)), size=4)
    assert figures.too_large == 2
    assert (figures.fences, figures.fences_split) == (0, 0)


@pytest.mark.parametrize("strategy", ["recursive", "paragraph", "sentence"])
async def test_what_the_pipeline_keeps_is_as_promised(strategy):
    tree = DocumentTree("docs", tuple((f"{n}.md", PAGE.replace("nine", f"{n} o'clock") * 20) for n in range(3)))
    figures = await evaluate_tree(tree, options=ChunkOptions.read(strategy, 60, 10))
    assert figures.kept
    assert (figures.documents, figures.fences, figures.rows) == (3, 60, 240)
    assert figures.chunks > 60


async def test_fixed_chunks_cut_fences_and_that_is_found_out():
    tree = DocumentTree("docs", (("a.md", PAGE * 20),))
    figures = await evaluate_tree(tree, options=ChunkOptions.read("fixed", 23, 0))
    assert figures.fences_split > 0
    assert figures.rows_split > 0
    assert (figures.inexact, figures.lost) == (0, 0)


def test_speed_is_told_for_each_size():
    figures = measure_speed(DocumentTree("docs", (("a.md", PAGE),)), sizes=(500, 2_000))
    assert [each.characters for each in figures] == [500, 2_000]
    assert all(each.seconds > 0 for each in figures)
    assert measure_speed(DocumentTree("empty", ())) == []


def test_trees_are_lines_of_documents_and_folders_of_text(tmp_path):
    (tmp_path / "packed.jsonl").write_text(json.dumps({"id": "x.md", "text": "packed"}), encoding="utf-8")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.md").write_text("deep", encoding="utf-8")
    (tmp_path / "a.txt").write_text("flat", encoding="utf-8")
    (tmp_path / "c.png").write_bytes(b"\x89")
    packed, loose = load_trees(tmp_path)
    assert (packed.name, packed.documents, packed.characters) == ("packed", (("x.md", "packed"),), 6)
    assert [text for _, text in loose.documents] == ["flat", "deep"]
    assert [tree.name for tree in load_trees(tmp_path / "packed.jsonl")] == ["packed"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonl", b'{"id": "x"}', "line 1 of a.jsonl"),
        ("a.md", b"\xff\xfe", "a.md is not UTF-8"),
        ("a.png", b"", "neither"),
    ],
)
def test_a_tree_that_cannot_be_read_is_named(tmp_path, name, content, problem):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=re.escape(problem)):
        list(load_trees(tmp_path))
