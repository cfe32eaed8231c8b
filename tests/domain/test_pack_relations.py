from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.pack import SUPERSEDES, PackMemory, Relationship
from lamina.domain.pack_relations import RelatedMemory, concerned, heir, plan_addition, plan_change, plan_supersession
from lamina.errors import Conflict, InvalidInput

NOW = datetime(2031, 3, 1, tzinfo=UTC)
IDS = [f"m{number}" for number in range(6)]


def related(id: str, superseded_by: str | None = None, owner: str | None = None) -> RelatedMemory:
    return RelatedMemory(id, owner, superseded_by, is_deleted=False)


def memory(id: str, *targets: str, **fields) -> PackMemory:
    relationships = [Relationship(SUPERSEDES, target) for target in targets]
    return PackMemory(id, "acme", "p1", f"says {id}", NOW, NOW, relationships=relationships, **fields)


def is_circle(above: dict[str, str | None]) -> bool:
    for first in above.values():
        current, steps = first, 0
        while current is not None and steps <= len(above):
            current, steps = above.get(current), steps + 1
        if current is not None:
            return True
    return False


@given(st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)), max_size=30))
def test_whatever_is_tried_one_after_the_other_nothing_goes_round(tries):
    above: dict[str, str | None] = dict.fromkeys(IDS)
    for old, by in tries:
        kept = {id: related(id, superseded_by) for id, superseded_by in above.items()}
        would = {**above, old: by}
        must_fail = old == by or is_circle(would) or above[old] not in {None, by}
        try:
            is_new = plan_supersession(old, by, kept=kept)
        except (InvalidInput, Conflict):
            assert must_fail
        else:
            assert not must_fail
            assert is_new == (above[old] != by)
            above = would
    assert not is_circle(above)


@given(st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)), max_size=8))
def test_a_batch_is_planned_whole_or_refused(pairs):
    targets: dict[str, list[str]] = {id: [] for id in IDS}
    for old, by in pairs:
        targets[by].append(old)
    batch = [memory(id, *dict.fromkeys(targets[id])) for id in IDS]
    wanted = {(old, by) for old, by in pairs}
    above: dict[str, str | None] = dict.fromkeys(IDS) | dict(wanted)
    must_fail = len({old for old, _ in wanted}) < len(wanted) or is_circle(above)
    try:
        planned, links = plan_addition(batch, {"p1": None}, kept={}, holders={})
    except (InvalidInput, Conflict):
        assert must_fail
    else:
        assert not must_fail
        assert set(links) == wanted
        assert {each.id: each.superseded_by for each in planned} == above


def test_what_is_concerned_is_named_once():
    given_one = memory("m1", "m2", "m3", superseded_by="m4")
    assert concerned([given_one, memory("m2", "m1")]) == ["m1", "m2", "m4", "m3"]


def test_a_relationship_that_was_there_is_not_judged_anew():
    former = memory("m1", "gone")
    assert plan_change(former, former.replace(confidence=0.5), None, kept={}) == ([], [])
    assert plan_change(former, memory("m1"), None, kept={}) == ([], ["gone"])


@pytest.mark.parametrize(
    ("start", "gone", "expected"),
    [("m2", {"m1"}, "m2"), ("m2", {"m1", "m2"}, "m3"), ("m2", {"m2", "m3"}, None), (None, {"m2"}, None)],
)
def test_the_heir_is_the_first_above_that_stays(start, gone, expected):
    kept = {"m2": related("m2", "m3"), "m3": related("m3")}
    assert heir(start, gone, kept=kept) == expected


def test_data_that_go_round_already_have_no_heir_and_end():
    kept = {"m1": related("m1", "m2"), "m2": related("m2", "m1")}
    assert heir("m1", {"m1", "m2"}, kept=kept) is None
    with pytest.raises(InvalidInput):
        plan_supersession("m3", "m3", kept={"m3": related("m3"), **kept})
    assert plan_supersession("m3", "m1", kept={"m3": related("m3"), **kept})
