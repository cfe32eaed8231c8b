from __future__ import annotations

from collections import Counter
from itertools import groupby

from lamina.demo.texts import CONVERSATIONS, load_questions, load_turns
from lamina.domain.memory import SHARED_LAYERS, Layer

TURNS = load_turns()
BY_ID = {turn.id: turn for turn in TURNS}


def test_two_people_speak_for_months_and_two_languages_and_a_team_are_there():
    counts = Counter(turn.owner for turn in TURNS)
    assert set(counts) == set(CONVERSATIONS)
    assert all(25 <= counts[name] <= 40 for name in ("mira", "tomas"))
    assert all(counts[name] >= 12 for name in ("lin", "jonas", "team"))
    for name in ("mira", "tomas"):
        dates = [turn.date for turn in TURNS if turn.owner == name]
        assert (max(dates) - min(dates)).days > 180


def test_ids_and_texts_are_each_there_once():
    assert len(BY_ID) == len(TURNS)
    assert len({turn.text for turn in TURNS}) == len(TURNS)


def test_dates_have_a_zone_and_go_forward():
    for _, conversation in groupby(TURNS, key=lambda turn: turn.owner):
        dates = [turn.date for turn in conversation]
        assert all(date.utcoffset() is not None for date in dates)
        assert dates == sorted(dates)


def test_only_the_teams_facts_are_shared():
    assert {turn.owner for turn in TURNS if Layer(turn.layer) in SHARED_LAYERS} == {"team"}


def test_the_day_and_the_speaker_stand_in_what_is_remembered():
    assert BY_ID["mira-15"].content.startswith("[2 May 2025] Mira: Dr. Salgado")


def test_each_of_ten_questions_expects_a_memory_that_its_asker_may_see():
    questions = load_questions()
    assert len(questions) == 10
    for question in questions:
        turn = BY_ID[question.expected]
        assert turn.owner == question.owner or Layer(turn.layer) in SHARED_LAYERS


def test_what_was_overtaken_is_older_than_what_overtook_it():
    changed = [question for question in load_questions() if question.earlier is not None]
    assert changed
    assert all(BY_ID[question.earlier].date < BY_ID[question.expected].date for question in changed)
