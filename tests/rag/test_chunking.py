from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lamina.domain.text import is_blank
from lamina.errors import InvalidInput, InvalidType
from lamina.providers.tokens import EstimateCounter, VocabularyCounter
from lamina.rag.chunking import Chunk, ChunkOptions, ChunkStrategy, chunk_text

ESTIMATE = EstimateCounter().count
STRATEGIES = list(ChunkStrategy)
MARKDOWN = st.lists(
    st.sampled_from(
        [
            *[
                "# One\n",
                "## Two { #two }\n",
                "Title\n=====\n",
                "Under\n---\n",
                "\n",
                "\r\n",
                "\n\n\n",
                "\f",
                " ",
                "\u200b",
            ],
            *["```py\n# no heading\n\nx = 1\n```\n", "~~~\nopen\n", "    indented = code\n", "---\nname: x\n---\n"],
            *[
                "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n",
                "- one\n- two\n  more\n\n  - deep\n",
                "1. first\n2. second\n",
            ],
            *[
                "> quoted\n> ```\n> code\n> ```\n",
                "Dr. Who paid 3.5. He left! ",
                "路線図は灯台の隣。壁に貼った。",
                "e\u0301",
                "👩‍👩‍👧",
            ],
            *[
                "word " * 30,
                "x" * 90,
                "<!-- a\n# b\n-->\n",
                "<pre>\n# c\n</pre>\n",
                "ping pong ping pong ping",
                "<|endoftext|>",
            ],
        ]
    ),
    max_size=30,
).map("".join)
TEXTS = st.one_of(MARKDOWN, st.text(max_size=300), st.text("ab. \n#`|->\t\f\r", max_size=300))


def words(text):
    """A counter that is easy to see through: words, and every other visible character by itself."""
    return len(text.split()) + sum(not each.isalnum() and not each.isspace() for each in text)


def wayward(text):
    """A counter by which a whole has more tokens than its parts, and a shorter text sometimes more than a longer."""
    return (len(text) + 2) // 3 + (len(text) > 20) * 3 + (len(text) % 7 == 0)


def chunks_of(text, strategy="recursive", size=40, overlap=8, count=words):
    return list(chunk_text(text, ChunkOptions.read(strategy, size, overlap), count))


def contents(text, **options):
    return [text[chunk.start : chunk.end] for chunk in chunks_of(text, **options)]


@st.composite
def sizes(draw):
    size = draw(st.integers(1, 60))
    return size, draw(st.integers(0, size - 1))


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from(STRATEGIES), sizes(), st.sampled_from([words, ESTIMATE, wayward]))
@example("ping pong ping pong ping", ChunkStrategy.FIXED, (4, 3), words)
@example("# One\n## Two { #two }\n# One\n```py\n# no heading\n\nx = 1\n```\n", ChunkStrategy.RECURSIVE, (8, 0), wayward)
def test_chunks_minus_overlaps_rebuild_the_text_and_none_is_too_large(text, strategy, limits, count):
    size, overlap = limits
    chunks = chunks_of(text, strategy, size, overlap, count)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    end = 0
    rebuilt = ""
    for chunk in chunks:
        assert chunk.start <= chunk.body < chunk.end
        assert chunk.start >= (chunks[chunk.index - 1].start if chunk.index else 0)
        assert is_blank(text[end : chunk.body])  # a gap is blank text of a whole chunk
        rebuilt += text[end : chunk.body] + text[chunk.body : chunk.end]
        content = text[chunk.start : chunk.end]
        assert not is_blank(content)
        assert count(content) <= size or len(content) == 1
        end = chunk.end
    assert is_blank(text[end:])
    assert rebuilt + text[end:] == text


@settings(max_examples=60, deadline=None)
@given(MARKDOWN, st.sampled_from(STRATEGIES), sizes())
def test_sizes_hold_by_a_real_vocabulary(text, strategy, limits):
    count = VocabularyCounter().count
    for chunk in chunks_of(text, strategy, *limits, count):
        content = text[chunk.start : chunk.end]
        assert count(content) <= limits[0] or len(content) == 1


@settings(max_examples=100, deadline=None)
@given(MARKDOWN, st.sampled_from(STRATEGIES), sizes())
def test_what_is_repeated_has_at_most_the_overlap(text, strategy, limits):
    for chunk in chunks_of(text, strategy, *limits, words):
        assert words(text[chunk.start : chunk.body]) <= limits[1] + 1  # the seam between two sentences


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("size", "overlap"), [(size, overlap) for size in (1, 2, 3, 7) for overlap in range(size)])
def test_every_pair_of_size_and_overlap_makes_progress(strategy, size, overlap):
    text = "one two three. four five!\n\nsix\nseven " * 5
    chunks = chunks_of(text, strategy, size, overlap)
    bodies = [text[chunk.body : chunk.end] for chunk in chunks]
    assert "".join(bodies).split() == text.split()


@pytest.mark.parametrize(
    ("strategy", "size", "overlap", "field"),
    [
        ("recursive", 10, 10, "chunk_overlap"),
        ("recursive", 10, 11, "chunk_overlap"),
        ("recursive", 0, 0, "chunk_size"),
        ("recursive", -5, 0, "chunk_size"),
        ("recursive", 10, -1, "chunk_overlap"),
        ("by_magic", 10, 1, "chunk_strategy"),
        ("recursive", 10**9, 1, "chunk_size"),
    ],
)
def test_options_that_cannot_be_are_refused(strategy, size, overlap, field):
    with pytest.raises(InvalidInput) as caught:
        ChunkOptions.read(strategy, size, overlap)
    assert caught.value.field == field


@pytest.mark.parametrize("size", [True, 10.5, "10", None])
def test_sizes_that_are_no_whole_numbers_are_refused(size):
    with pytest.raises((InvalidInput, InvalidType), match="chunk_size"):
        ChunkOptions.read("recursive", size, 1)


def test_fixed_chunks_have_exactly_the_size_and_the_overlap():
    text = " ".join(f"w{number}" for number in range(100))
    chunks = chunks_of(text, "fixed", 10, 3)
    assert [words(text[chunk.start : chunk.end]) for chunk in chunks[:-1]] == [10] * (len(chunks) - 1)
    assert {words(text[chunk.start : chunk.body]) for chunk in chunks[1:]} == {3}


def test_offsets_are_right_where_a_chunk_looks_like_another():
    text = "ping pong ping pong ping"
    assert contents(text, strategy="fixed", size=2, overlap=1) == [
        "ping pong ",
        " pong ping ",
        " ping pong ",
        " pong ping",
    ]


def test_text_before_the_first_heading_and_marks_in_code_are_kept():
    text = "Before it.\n\n```sh\n# note\nrun\n```\n\n# First\n\nAfter it.\n"
    chunks = chunks_of(text, size=8, overlap=0)
    assert "".join(text[chunk.body : chunk.end] for chunk in chunks) == text
    assert (chunks[0].headers, chunks[-1].headers) == ((), ("First",))
    assert all("note" not in chunk.headers for chunk in chunks)


def test_sections_that_fit_stay_whole_and_know_their_titles():
    text = "# Guide\n\nIntro here.\n\n## Setup\n\nInstall it. Then run it.\n\n## Usage\n\nCall it. " + "Again. " * 20
    chunks = chunks_of(text, size=12, overlap=4)
    starts = [text[chunk.start : chunk.end].splitlines()[0] for chunk in chunks]
    assert starts[:3] == ["# Guide", "## Setup", "## Usage"]
    assert [chunk.headers for chunk in chunks[:3]] == [("Guide",), ("Guide", "Setup"), ("Guide", "Usage")]
    assert chunks[1].above == ("Guide",)
    assert chunks[3].above == chunks[3].headers == ("Guide", "Usage")


def test_nothing_is_repeated_across_a_heading():
    text = "# A\n\nOne two three four five. Six seven.\n\n# B\n\nEight nine ten eleven twelve. Thirteen.\n"
    assert all(chunk.start == chunk.body for chunk in chunks_of(text, size=12, overlap=4))


def test_the_overlap_is_whole_sentences():
    text = "Alpha one two three. Beta four. Gamma five six seven. Delta eight nine ten."
    first, second, *_ = chunks_of(text, "sentence", 10, 4)
    assert text[second.start : second.body] == "Beta four. "
    assert text[first.start : first.end].endswith("Beta four. ")


def test_a_heading_never_stands_at_the_end_of_a_chunk():
    text = "Some words to fill it up here. " * 3 + "\n\n### Next\n\n" + "More of the next part follows. " * 3
    for strategy in ("recursive", "paragraph", "sentence"):
        for size in range(15, 40):
            assert not any(each.rstrip().endswith("### Next") for each in contents(text, strategy=strategy, size=size))


@pytest.mark.parametrize("strategy", ["recursive", "paragraph", "sentence"])
def test_a_fence_that_fits_is_never_split(strategy):
    fence = "```py\nfor x in y:\n\n    print(x)\n\n# done\n```\n"
    nested = "1. Do:\n\n    ```sh\n    one\n\n    two\n    ```\n"
    quoted = "> Say:\n>\n> ```\n> hi\n> ```\n"
    text = "".join(f"Words {n} before it.\n\n{fence}\n{nested}\n{quoted}\n" for n in range(6))
    for size in range(23, 60):
        for content in contents(text, strategy=strategy, size=size, overlap=5):
            assert content.count("```") % 2 == 0


def test_a_fence_that_is_too_large_is_split_between_lines():
    text = "```\n" + "".join(f"line {n} of it\n" for n in range(40)) + "```\n"
    pieces = contents(text, size=30, overlap=0)
    assert len(pieces) > 4
    assert all(piece.endswith("\n") for piece in pieces)


def test_a_table_is_split_between_rows_and_its_header_repeated():
    head = "| n | name | city | x | y | z | u | v |\n|---|---|---|---|---|---|---|---|\n"
    rows = [f"| {n} | name {n} | city {n} | x | y | z | u | v |\n" for n in range(60)]
    text = "Before.\n\n" + head + "".join(rows) + "\nAfter.\n"
    chunks = chunks_of(text, size=300, overlap=0, count=ESTIMATE)
    assert len(chunks) > 3
    for chunk in chunks[1:]:
        content = text[chunk.start : chunk.end]
        assert chunk.table_header == head
        assert content.splitlines()[0] + "\n" in rows
        assert ESTIMATE(chunk.table_header + content) <= 300
    assert chunks[0].table_header is None


def test_a_header_wider_than_a_chunk_does_not_cost_the_rows_below_it():
    head = f"| name | {' ' * 200} |\n|------|{'-' * 200}|\n"
    rows = [f"| row {n} | {'word ' * 8}|\n" for n in range(5)]
    pieces = contents(head + "".join(rows), size=40, overlap=0, count=ESTIMATE)
    assert all(any(row in piece for piece in pieces) for row in rows)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_wide_row_and_a_text_without_a_space_end_in_bounded_pieces(strategy):
    row = "| " + "wide" * 225 + " |\n"
    text = "| a |\n|---|\n" + row * 3 + "\n" + "x" * 20_000 + "\n"
    chunks = chunks_of(text, strategy, 64, 10, ESTIMATE)
    assert "".join(text[chunk.body : chunk.end] for chunk in chunks) == text
    assert max(ESTIMATE(text[chunk.start : chunk.end]) for chunk in chunks) <= 64


def test_lists_are_split_between_items():
    text = "".join(f"- item {n} says a few words\n  and goes on here\n" for n in range(20))
    assert all(piece.startswith("- item") for piece in contents(text, size=35, overlap=0))
    overlapping = chunks_of(text, size=35, overlap=12)
    assert all(text[chunk.start :].startswith("- item") for chunk in overlapping)
    assert any(chunk.start < chunk.body for chunk in overlapping)


def test_pages_are_those_of_the_first_visible_character():
    text = "One one one. Two.\fThree three three. Four.\fFive five."
    chunks = chunks_of(text, "fixed", 4, 2)
    assert {chunk.page for chunk in chunks} == {1, 2, 3}
    for chunk in chunks:
        first = chunk.start + len(text[chunk.start : chunk.end]) - len(text[chunk.start : chunk.end].lstrip())
        assert chunk.page == 1 + text.count("\f", 0, first)
    assert {chunk.page for chunk in chunks_of("No pages here.")} == {None}


def test_line_breaks_are_kept_as_they_are():
    text = "# A\r\n\r\nOne.\r\nTwo.\r\n\r\n## B\r\rThree.\r\n"
    chunks = chunks_of(text, size=4, overlap=0)
    assert "".join(text[chunk.body : chunk.end] for chunk in chunks) == text
    assert chunks[-1].headers == ("A", "B")


def test_two_headings_with_nothing_between_make_no_blank_chunk():
    text = "# A\n\n   \n\n# B\n\n \t\n"
    assert all(content.strip() for content in contents(text, size=2, overlap=0))


def test_a_blank_run_of_many_chunks_is_left_out_and_nothing_else():
    text = "before" + " " * 3_000 + "after"
    chunks = chunks_of(text, "fixed", 16, 0, ESTIMATE)
    assert "".join(text[chunk.body : chunk.end] for chunk in chunks).split() == ["before", "after"]
    assert all(text[chunk.start : chunk.end].strip() for chunk in chunks)


def test_a_letter_is_not_parted_from_its_marks():
    text = "e\u0301" * 200 + "👩\u200d👩\u200d👧" * 100
    for chunk in chunks_of(text, "fixed", 16, 4, ESTIMATE):
        assert text[chunk.end : chunk.end + 1] not in {"\u0301", "\u200d"}


def test_texts_are_counted_a_bounded_number_of_times():
    """Linear without a clock: how many characters are counted for each character there is."""

    def counted(text, strategy):
        seen = 0

        def count(part):
            nonlocal seen
            seen += len(part)
            return ESTIMATE(part)

        for _ in chunk_text(text, ChunkOptions(strategy), count):
            pass
        return seen / len(text)

    prose = "Here is a sentence of some words. " * 3_000
    for text in (prose, "x" * 100_000, prose.replace(". ", ".\n\n"), "| a | b |\n|---|---|\n" + "| c | d |\n" * 8_000):
        for strategy in STRATEGIES:
            once, four_times = counted(text, strategy), counted(text * 4, strategy)
            assert four_times < once * 1.2 + 1
            assert four_times < 16


def test_the_options_decide_the_chunks_alone():
    text = "# A\n\n" + "Some words in a row. " * 50
    assert chunks_of(text) == chunks_of(text)
    assert isinstance(chunks_of(text)[0], Chunk)


@pytest.mark.parametrize("strategy", ["recursive", "paragraph", "sentence"])
def test_code_that_is_repeated_keeps_its_indentation(strategy):
    text = "Some words to begin with here.\n\n    one = code\n    two\n\n" + "more " * 12 + "end."
    repeated = [text[chunk.start : chunk.body] for chunk in chunks_of(text, strategy, 20, 9)]
    assert any(each.startswith("    one = code\n    two") for each in repeated)
