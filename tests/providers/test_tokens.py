from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from texts_of_many_scripts import DENSE, SENTENCES

from lamina.errors import ConfigError, InvalidType, MissingExtra, ProviderError
from lamina.ports.token_counter import TokenCounter
from lamina.providers import tokens
from lamina.providers.tokens import (
    EstimateCounter,
    VocabularyCounter,
    checked_counter,
    token_counter,
    vocabulary_of,
)

O200K = VocabularyCounter("o200k_base")


@pytest.mark.parametrize(("kind", "text"), [*SENTENCES.items(), *DENSE.items()])
def test_the_estimate_is_at_most_ten_percent_below_the_exact_count(kind, text):
    assert EstimateCounter().count(text) >= 0.9 * O200K.count(text)


@pytest.mark.parametrize(("kind", "text"), [*SENTENCES.items(), *DENSE.items()])
def test_the_estimate_is_not_far_above_the_exact_count_either(kind, text):
    assert EstimateCounter().count(text) <= 1.6 * O200K.count(text)


@pytest.mark.parametrize(
    ("text", "o200k", "cl100k"),
    [
        ("", 0, 0),
        ("Hello, world", 3, 3),
        ("  leading and trailing  ", 5, 5),
        (SENTENCES["Chinese"], 32, 52),
        (SENTENCES["Thai"], 43, 88),
        (SENTENCES["Hindi"], 41, 111),
        (SENTENCES["German"], 28, 35),
        ("3.14159 and 2026-11-30T07:55:47Z", 19, 19),
        ("I'll don't they'RE camelCase HTTPServer2", 10, 11),
        ("🎉👨‍👩‍👧‍👦\r\n\t\t}\n\n", 17, 25),
        ("<|endoftext|>", 7, 7),
    ],
)
def test_the_counts_are_those_of_the_reference_encoder(text, o200k, cl100k):
    """The numbers were made with the encoder of the vocabularies' own maker, which is not needed here."""
    assert (O200K.count(text), VocabularyCounter("cl100k_base").count(text)) == (o200k, cl100k)


def test_a_long_text_is_counted_in_pieces_to_the_same_number():
    paragraph = " ".join(SENTENCES.values()) + "\n" + DENSE["code"]
    short = 25 * paragraph  # one piece, and then the same in many
    assert len(short) < tokens._PIECE < len(8 * short)
    assert O200K.count(8 * short) == 8 * O200K.count(short)


@pytest.mark.parametrize(
    ("letter", "least", "most"),
    [
        ("a", 125_000, 125_010),
        ("字", 1_000_000, 1_000_000),
        (" ", 7_800, 7_850),
        ("!", 62_500, 62_510),
        ("é", 1_000_000, 1_000_000),
    ],
)
def test_a_million_characters_without_a_seam_are_counted(letter, least, most):
    assert least <= O200K.count(letter * 1_000_000) <= most


def test_half_of_a_surrogate_pair_is_counted_and_no_error():
    assert O200K.count("a\ud83d") >= 1
    assert EstimateCounter().count("a\ud83d") >= 1


@pytest.mark.parametrize(
    ("model", "vocabulary"),
    [
        *(
            (model, "o200k_base")
            for model in ("gpt-4o", "GPT-4o-mini", "gpt-4.1-nano", "gpt-5", "gpt-5.1-mini", "o1", "o3-mini")
        ),
        *(
            (model, "o200k_base")
            for model in ("openai:gpt-4o", "openrouter/openai/o4-mini", "ft:gpt-4o-mini:acme::x", "gpt-oss-20b")
        ),
        *((model, "cl100k_base") for model in ("gpt-4", "gpt-4-turbo", "azure/gpt-35-turbo", "gpt-3.5-turbo-16k")),
        *((model, None) for model in ("claude-sonnet", "llama3:8b", "gpt-4.7", "o11", "my-o1", "solo1", "gpt-45", "")),
    ],
)
def test_the_vocabulary_of_a_model_is_known_by_its_name(model, vocabulary):
    assert vocabulary_of(model) == vocabulary
    counter = token_counter(model)
    assert counter.is_exact == (vocabulary is not None)
    assert counter.name == (vocabulary or "estimate")


def test_without_a_model_the_counter_is_the_estimate():
    assert isinstance(token_counter(), EstimateCounter)


def test_without_the_extra_a_known_model_gets_the_estimate_and_a_vocabulary_is_refused(monkeypatch):
    monkeypatch.setattr(tokens, "find_spec", lambda name: None)
    assert token_counter("gpt-4o").name == "estimate"
    with pytest.raises(MissingExtra, match=r"lamina\[tokens\]"):
        VocabularyCounter("o200k_base")


def test_an_unknown_vocabulary_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="o200k_base, cl100k_base"):
        VocabularyCounter("p50k_base")


@pytest.mark.parametrize("counter", [EstimateCounter(), O200K])
@pytest.mark.parametrize("text", [None, b"abcd", 7])
def test_what_is_not_text_is_refused(counter, text):
    with pytest.raises(InvalidType, match="text"):
        counter.count(text)


def test_a_model_that_is_not_text_is_refused():
    with pytest.raises(InvalidType, match="model"):
        token_counter(7)  # type: ignore[arg-type]


def test_a_failure_of_the_encoder_is_told_as_ours(monkeypatch):
    class Broken:
        def encode_ordinary(self, text):
            raise ValueError("Input too long")

    monkeypatch.setattr(tokens, "_encoding", lambda name: Broken())
    with pytest.raises(ProviderError, match="could not count") as caught:
        O200K.count("abc")
    assert isinstance(caught.value.__cause__, ValueError)


def test_many_threads_count_alike():
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(O200K.count, [DENSE["code"]] * 64))
    assert set(counts) == {O200K.count(DENSE["code"])}


def test_a_counter_of_the_hosts_own_fits_the_port():
    class Words:
        name = "words"
        is_exact = False

        def count(self, text: str) -> int:
            return len(text.split())

    counter: TokenCounter = Words()
    assert counter.count("one two") == 2


def test_the_vocabulary_is_not_loaded_before_the_first_count():
    script = (
        "import sys; from lamina.providers.tokens import token_counter; c = token_counter('gpt-4o'); "
        "assert c.is_exact; assert 'bpe_openai' not in sys.modules; c.count('a'); assert 'bpe_openai' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


class HostsCounter:
    """A host's own counter, which gives or raises what a test wants."""

    name = "mine"

    def __init__(self, given):
        self.given = given

    def count(self, text):
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


@pytest.mark.parametrize(
    "given", [-1, 1.5, float("nan"), float("inf"), "3", None, True, ValueError("SECRET")], ids=repr
)
def test_a_count_of_a_hosts_counter_that_is_none_is_refused(given):
    counter = checked_counter(HostsCounter(given))
    assert (counter.name, counter.is_exact) == ("mine", False)
    with pytest.raises(ProviderError, match="mine") as caught:
        counter.count("x")
    assert "SECRET" not in str(caught.value)


def test_a_hosts_counter_that_counts_is_believed_and_what_is_no_counter_refused():
    assert checked_counter(HostsCounter(7)).count("x") == 7
    assert checked_counter(None) is None
    own = EstimateCounter()
    assert checked_counter(own) is own
    for given in (5, len, object()):
        with pytest.raises(InvalidType, match="counter"):
            checked_counter(given)
