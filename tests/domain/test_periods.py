from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.period_words import LEXICONS
from lamina.domain.periods import read_periods, time_words

NOW = datetime(2023, 12, 10, 12, 30, tzinfo=UTC)  # a Sunday

NAMED = """
What did John do on 7 March 2023? | 2023-03-07 2023-03-08
What did she say on May 25th, 2022? | 2022-05-25 2022-05-26
Who came on December 1,2022? | 2022-12-01 2022-12-02
What was planned for the 3rd of June? | 2023-06-03 2023-06-04
What did Audrey do on 2023-10-24? | 2023-10-24 2023-10-25
What was in 2023-10? | 2023-10-01 2023-11-01
What did he attend in March 2023? | 2023-03-01 2023-04-01
Where did she go in December? | 2023-12-01 2024-01-01
Where was Tim in 2022? | 2022-01-01 2023-01-01
What happened yesterday? | 2023-12-09 2023-12-10
The day before yesterday, what was that? | 2023-12-08 2023-12-09
What did we decide two weeks ago? | 2023-11-23 2023-11-30
What did I buy 3 days ago? | 2023-12-07 2023-12-08
What was in the last two weeks? | 2023-11-23 2023-12-11
What did Mira do last May? | 2023-05-01 2023-06-01
What did Mira do last December? | 2022-12-01 2023-01-01
What is next January? | 2024-01-01 2024-02-01
What did she do last week? | 2023-11-27 2023-12-04
What did she do last weekend? | 2023-12-02 2023-12-04
What is there this month? | 2023-12-01 2024-01-01
What did I eat on Sunday? | 2023-12-03 2023-12-04
Who plays next Friday? | 2023-12-15 2023-12-16
Where was he between August 11 and August 15 2023? | 2023-08-11 2023-08-12 2023-08-15 2023-08-16
Was haben wir vor zwei Wochen entschieden? | 2023-11-23 2023-11-30
Was geschah am 7. März 2023, und wo? | 2023-03-07 2023-03-08
Was war am 7.3.2023? | 2023-03-07 2023-03-08
Was hat sie letzten Mai gemacht? | 2023-05-01 2023-06-01
Was haben wir im Jahr 2022 gekauft? | 2022-01-01 2023-01-01
Qu'ai-je fait hier ? | 2023-12-09 2023-12-10
Qu'avons-nous décidé il y a deux semaines ? | 2023-11-23 2023-11-30
Qu'a-t-elle fait l'année dernière ? | 2022-01-01 2023-01-01
¿Qué hicimos hace dos semanas? | 2023-11-23 2023-11-30
¿Qué hizo el 7 de marzo de 2023? | 2023-03-07 2023-03-08
Che cosa abbiamo deciso due settimane fa? | 2023-11-23 2023-11-30
O que fizemos há duas semanas? | 2023-11-23 2023-11-30
Wat deden we vorige week? | 2023-11-27 2023-12-04
Что мы решили две недели назад? | 2023-11-23 2023-11-30
Что было в марте 2023? | 2023-03-01 2023-04-01
我们两周前决定了什么？ | 2023-11-23 2023-11-30
2023年3月7日发生了什么？ | 2023-03-07 2023-03-08
去年五月她做了什么？ | 2022-05-01 2022-06-01
昨日何をした？ | 2023-12-09 2023-12-10
""".strip().splitlines()


@pytest.mark.parametrize("case", NAMED)
def test_a_query_names_a_period(case):
    query, expected = case.split(" | ")
    found = read_periods(query, NOW)
    assert " ".join(f"{each.start:%Y-%m-%d} {each.end:%Y-%m-%d}" for each in found) == expected
    assert all(each.start.tzinfo is UTC for each in found)


@pytest.mark.parametrize(
    "query",
    [
        "What may I eat?",
        "Who came second in the march?",
        "Does April like the sun?",
        "Set the timeout to 30 seconds",
        "What changed in version 2023?",
        "What about 3/4/2023?",
        "What happened on 31 April 2023?",
        "What has she done since last May?",
        "What happened before 2023-03-07?",
        "the day this happened",
        "Was ist hier passiert?",
        "Wat heb ik hier gedaan?",
        "2023年以前",
        "What is in the year 9999?",
        "x" * 2_000 + " yesterday",
    ],
)
def test_nothing_is_read_where_no_period_is_sure(query):
    assert read_periods(query, NOW) == ()


def test_a_day_begins_in_the_time_zone_of_the_moment():
    zone = timezone(timedelta(hours=9))
    (period,) = read_periods("yesterday", NOW.astimezone(zone))
    assert period.start == datetime(2023, 12, 9, tzinfo=zone)


def test_a_day_without_a_year_is_the_last_that_there_was():
    (period,) = read_periods("on 29 February", NOW)
    assert period.start == datetime(2020, 2, 29, tzinfo=UTC)


@given(st.text() | st.from_regex(r"(in|on|last|vor|\d{1,4}|ago|may|weeks?|年|月|[ .,-])+", fullmatch=True))
def test_any_text_can_be_read(text):
    for period in read_periods(text, NOW):
        assert period.start < period.end
    time_words(text)


def test_a_question_for_a_time_is_told_by_how_it_begins_in_each_language():
    for lexicon in LEXICONS.values():
        words = time_words(f"¿{lexicon.when.split()[0].replace('_', ' ').title()} x?")
        assert words is not None
        assert words.search(f"xx {lexicon.days[-1].split()[0].replace('_', ' ')}, xx")
    assert time_words("What did he say when he came?") is None
    assert time_words("When did he come?").search("he spoke yesterdays") is None
