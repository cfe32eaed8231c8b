from __future__ import annotations

import pytest

from lamina.conversation.setbacks import Setbacks, of_user


def test_failures_are_written_beside_the_users_metadata_and_read_back():
    failed = Setbacks().after("it hung", last_index=7, most=3)
    kept = failed.written({"plan": "gold"})
    assert Setbacks.read(kept) == failed == Setbacks(1, "it hung", 0)
    assert of_user(kept) == {"plan": "gold"}
    assert Setbacks().written(kept) == {"plan": "gold"}


def test_from_the_third_failure_on_the_summariser_rests_longer_each_time():
    setbacks = Setbacks()
    rests = []
    for _ in range(12):
        setbacks = setbacks.after("down", last_index=100, most=3)
        rests.append(setbacks.resume_at and setbacks.resume_at - 100)
    assert rests == [0, 0, 10, 20, 40, 80, 160, 320, 320, 320, 320, 320]
    assert not setbacks.allow(419)
    assert setbacks.allow(420)


@pytest.mark.parametrize(
    "kept",
    [None, 3, {}, {"failures": True, "problem": "", "resume_at": 0}, {"failures": 1, "problem": 1, "resume_at": 0}],
)
def test_what_cannot_be_read_counts_as_no_failure(kept):
    assert Setbacks.read({"lamina:summarizer": kept}) == Setbacks()
