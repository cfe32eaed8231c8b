from __future__ import annotations

import json

import pytest

from lamina.domain.pack_decay import Tier
from lamina.errors import InvalidInput
from lamina.evaluation.reductions import ItemKind, evaluate_reductions, items_of, load_texts

TEXT = "Then Ada Byron left Rio on 5 May 2024 with 12 crates. Later Ada's ship sank off Porto."


def test_names_numbers_and_dates_are_told_apart_and_a_date_is_no_number():
    assert items_of(TEXT) == {
        (ItemKind.NAME, "Ada Byron"),
        (ItemKind.NAME, "Ada"),
        (ItemKind.NAME, "Rio"),
        (ItemKind.NAME, "Porto"),
        (ItemKind.NUMBER, "12"),
        (ItemKind.DATE, "5 May 2024"),
    }


@pytest.mark.parametrize(
    "date", ["2024-05-06", "6.5.2024", "May 6, 2024", "6th of May", "March-15-2024", "2024年5月6日"]
)
def test_dates_of_many_forms_are_one_item(date):
    assert (ItemKind.DATE, date) in items_of(f"she left on {date} by ship")


def test_what_a_reduction_keeps_is_set_against_the_first_characters():
    kept = {Tier.SUMMARY: "Ada Byron; 5 May 2024; 12 crates", Tier.KEY_FACTS: "Rio"}
    summary, facts = evaluate_reductions("one", [TEXT], reduce=lambda _, tier: kept[tier], count=len)
    assert (summary.kept(), summary.kept(ItemKind.NAME), summary.kept(ItemKind.DATE)) == (4 / 6, 2 / 4, 1.0)
    assert summary.cut() == 3 / 6  # Ada Byron, Ada and Rio are among the first 32 characters
    assert summary.share == len(kept[Tier.SUMMARY]) / len(TEXT)
    assert (facts.kept(), facts.cut()) == (1 / 6, 0.0)
    assert facts.row()["kept"] == {"all": 1 / 6, "names": 1 / 4, "numbers": 0.0, "dates": 0.0}


def test_a_longer_number_that_holds_a_shorter_one_does_not_keep_it():
    (figures, _) = evaluate_reductions("one", ["it took 12 of them"], reduce=lambda *_: "it took 1288")
    assert figures.kept() == 0.0


def test_what_has_no_items_has_no_share():
    (figures, _) = evaluate_reductions("one", ["nothing of that kind is in here at all"])
    assert (figures.kept(), figures.cut()) == (None, None)


def test_texts_are_taken_evenly_and_short_ones_left_out(tmp_path):
    rows = [{"id": str(n), "text": f"{n} " + "word " * 40} for n in range(100)] + [{"id": "x", "text": "short"}]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    ((name, texts),) = load_texts(tmp_path, most=10)
    assert (name, [text.split()[0] for text in texts]) == ("set", [str(n) for n in range(0, 100, 10)])
    with pytest.raises(InvalidInput):
        list(load_texts(tmp_path / "none", most=10))


def test_in_german_what_stands_with_an_article_or_ends_as_nouns_do_is_no_name():
    text = (
        "Der Rat hat die Karte von Marta Lindqvist aus Chemnitz nicht bezahlt, und die NFL ist mit dem alten Plan für "
        "das Haus in Rostock zufrieden. Das Holz kam von Holz aus Oslo und von drei Firmen mit Erfahrung."
    )
    names = {item for kind, item in items_of(text) if kind is ItemKind.NAME}
    assert names == {"Marta Lindqvist", "Chemnitz", "NFL", "Rostock", "Oslo"}


def test_a_latin_name_or_a_number_ends_where_a_script_without_spaces_goes_on():
    assert items_of("人はRNAを扱い、約4分の1が10日後にAda Byronの家で") == {
        (ItemKind.NAME, "RNA"),
        (ItemKind.NAME, "Ada Byron"),
        (ItemKind.NUMBER, "4"),
        (ItemKind.NUMBER, "1"),
        (ItemKind.NUMBER, "10"),
    }
