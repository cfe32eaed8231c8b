from __future__ import annotations

import cProfile
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts_of_many_scripts import DENSE, SENTENCES

from lamina.domain.pack_decay import Tier
from lamina.domain.text import is_blank
from lamina.domain.token_estimate import estimate_tokens
from lamina.evaluation.reductions import evaluate_reductions
from lamina.packs.pack_rows import REDUCED
from lamina.packs.reducing import LEAST_TOKENS, aim_of, reduced

NOTES = [
    (
        "In the review on 14 March 2025 Ayşe Kaplan and Tom Whitfield agreed that the billing service of Northwind "
        "moves from the data centre in Rotterdam to the one in Lyon by 30 June 2025. The migration budget is "
        "$48,500, of which $12,000 is kept back for overtime. Tom has to hand in the cut-over plan to Priya Raman "
        "before 2 April. Nobody was happy with the idea of a weekend without invoices, but the alternative, "
        "running both for a quarter, was thought to be too dear. If the error rate goes above 0.5 % during the "
        "rehearsal, the whole thing is put off until autumn, and the old contract with Haldane runs on for another "
        "6 months at the old price."
    ),
    (
        "The user told us that her daughter Elif starts school in Izmir in September and that mornings are busy "
        "from then on, so calls before 10:30 are no good. She likes tea with her work and would rather read a long "
        "mail than sit in a meeting. Her manager, Jonas Brandt, signs everything above 2,500 euros. She is "
        "allergic to walnuts, which came up when we talked about the dinner on 19 November at the Golden Fork. She "
        "asked that we never phone her husband Kerem about work, since he was bothered by it twice last year and "
        "they quarrelled over it afterwards."
    ),
    (
        "When the nightly export fails with code 7041 the disk of the reporting host is nearly always full. Log in "
        "to Juniper, look at the archive folder and remove what is older than 45 days; the job then has to be "
        "started again by hand, which takes about 20 minutes, and somebody should watch the first 5 of them. Do "
        "not restart the machine, because the licence server of Meridian runs there too and forgets its 16 seats "
        "when it goes down. Marta Oliveira found this out on 2 February 2026 after three nights of guessing, and "
        "wrote it down in the handbook."
    ),
]
"""Notes as agents keep them."""

TEXTS = {
    **{f"note {number}": note for number, note in enumerate(NOTES)},
    **{f"{name}, often": f"{text} " * 4 for name, text in SENTENCES.items()},
    **DENSE,
    "one endless line": "and then it went on to say that nothing of all this was settled " * 300,
    "no space at all": "x" * 20_000,
    "a list": "\n".join(f"- step {number}: turn the valve {number} times and wait" for number in range(40)),
    "a table": "| place | harbour |\n| --- | --- |\n" + "\n".join(f"| {n} | Pier {n} |" for n in range(50)),
    "marks alone": "... !!! ??? --- " * 60,
    "blank lines": "\n\n\n" * 40 + "The lamp is green." + "\n" * 60,
}


@pytest.mark.parametrize("tier", sorted(REDUCED))
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_reduction_of_any_kind_of_text_is_as_short_as_its_tier_allows(text, tier):
    left = reduced(text, tier)
    assert not is_blank(left)
    assert len(left) < len(text)
    assert estimate_tokens(left) <= aim_of(tier).limit(estimate_tokens(text))


@pytest.mark.parametrize("tier", sorted(REDUCED))
def test_names_numbers_and_dates_of_notes_are_kept_and_more_than_the_first_characters_keep(tier):
    figures = next(each for each in evaluate_reductions("notes", NOTES) if each.tier is tier)
    least, share = {Tier.SUMMARY: (0.8, 0.37), Tier.KEY_FACTS: (0.6, 0.16)}[tier]
    assert figures.kept() >= least
    assert figures.kept() > figures.cut()
    assert figures.share <= share


def test_a_summary_says_more_than_its_key_facts():
    for note in NOTES:
        summary, facts = reduced(note, Tier.SUMMARY), reduced(note, Tier.KEY_FACTS)
        assert len(summary) > 1.5 * len(facts)


def test_a_number_keeps_the_word_that_it_counts():
    assert "45 days" in reduced(NOTES[2], Tier.SUMMARY)


def test_the_numbers_of_a_list_are_no_facts():
    text = "\n".join(f"{number}. Turn the valve by hand, slowly and without any haste." for number in range(1, 9))
    assert not re.search(r"\d", reduced(text, Tier.KEY_FACTS))


@given(st.text(max_size=400), st.sampled_from(sorted(REDUCED)))
def test_a_reduction_is_never_longer_always_the_same_and_blank_only_if_the_text_is(text, tier):
    left = reduced(text, tier)
    assert len(left) <= len(text)
    assert left == reduced(text, tier)
    assert is_blank(text) or not is_blank(left)


_WORDS = st.lists(
    st.sampled_from(
        "Ada Rio 3 14.5 2024-05-06 harbour lamp, green; and the (old) [pier] was sold. 'Then' §7 Überfahrt café "
        "3,000 kg x_y src/a.py https://a.example/b 12:30 März 一二三 です。 ไทย\n".split(" ")
    ),
    min_size=1,
    max_size=200,
)


@given(_WORDS, st.sampled_from(sorted(REDUCED)))
def test_nothing_is_invented_and_nothing_stands_in_another_order(words, tier):
    text = " ".join(words)
    left = reduced(text, tier)
    place = 0
    spoken = re.sub(r"\s+", " ", text)
    for piece in re.findall(r"\w+", left):
        place = spoken.find(piece, place)
        assert place >= 0
        place += len(piece)


@given(_WORDS, st.sampled_from(sorted(REDUCED)))
def test_the_size_is_bounded_by_the_tier(words, tier):
    text = " ".join(words)
    total = estimate_tokens(text)
    left = reduced(text, tier)
    if total < LEAST_TOKENS:
        assert left == text
    else:
        assert estimate_tokens(left) <= min(total, aim_of(tier).limit(total))


@pytest.mark.parametrize("kind", ["notes", "cells", "rows", "names"])
def test_a_long_text_takes_time_in_proportion_to_its_length(kind):
    """Counted in calls, not in seconds, which depend on the machine."""
    make = {
        "notes": lambda times: ("\n".join(NOTES) + "\n") * times,
        "cells": lambda times: ", ".join(str(number) for number in range(200 * times)),
        "rows": lambda times: "\n".join(f"{number} | {number % 7}" for number in range(100 * times)),
        "names": lambda times: " and ".join(f"Mira{number} Keller" for number in range(50 * times)),
    }[kind]
    calls = [_calls(make(times)) for times in (10, 20)]
    assert calls[1] < 2.6 * calls[0]


def _calls(text: str) -> int:
    profile = cProfile.Profile()
    profile.runcall(reduced, text, Tier.SUMMARY)
    return sum(each.callcount for each in profile.getstats())


def test_in_german_names_are_kept_before_the_nouns_that_are_capitalised_too():
    note = (
        "Die Firma hat im Frühjahr eine neue Halle gebaut, in der die Öfen der Abteilung sind. Der Auftrag kam von "
        "Marta Lindqvist aus Göteborg, die mit einem Schreiner und seinen Gesellen über den Preis gestritten hat. Das "
        "Holz und die Fenster sind aus einem Lager bei Chemnitz, wo die Preise nach einem langen Winter gefallen sind. "
        "Die Rechnung über die Arbeit ging an die NFL und nicht an den Vorstand der Bank, der sich darüber wunderte."
    )
    left = reduced(note, Tier.KEY_FACTS)
    assert all(name in left for name in ("Marta Lindqvist", "Göteborg", "Chemnitz", "NFL"))
    assert not re.search("Halle|Abteilung|Auftrag|Preis|Lager|Rechnung|Vorstand", left)


def test_in_japanese_months_and_names_of_several_parts_and_of_places_are_kept_whole():
    note = (
        "グスタフ・マーラーの記念館は仙台市にあり、来館者は5月から増えて、館内の展示室は全部で12階に分かれているという。"
        "隣の建物にはRNAを扱う研究室もあるので、見学したい人は受付で申し込み、案内を待つことになっている。"
        "食堂の料理はとてもおいしいと言われているが、昼はいつも混んでいるので、早めに行くほうがよいと思われる。"
    )
    left = reduced(note, Tier.KEY_FACTS)
    assert all(fact in left for fact in ("グスタフ・マーラー", "仙台市", "5月", "12"))
    assert "RNA" in reduced(note, Tier.SUMMARY)
