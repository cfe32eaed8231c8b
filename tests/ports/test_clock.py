import multiprocessing
import os
import uuid

import pytest

from lamina.ports.clock import new_memory_id


def test_ids_are_random_uuids_that_never_repeat() -> None:
    ids = [new_memory_id() for _ in range(10_000)]
    assert len(set(ids)) == len(ids)
    assert all(each.startswith("mem_") and len(each) == 36 for each in ids)
    made = [uuid.UUID(each.removeprefix("mem_")) for each in ids]
    assert {each.version for each in made} == {4}
    assert {each.variant for each in made} == {uuid.RFC_4122}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_gives_other_ids_than_its_parent() -> None:
    new_memory_id()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        given = pool.map(_some_ids, [5, 5], chunksize=1)
    ours = [new_memory_id() for _ in range(5)]
    assert len({*given[0], *given[1], *ours}) == 15


def _some_ids(count: int) -> list[str]:
    return [new_memory_id() for _ in range(count)]
