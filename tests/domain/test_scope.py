from datetime import UTC, datetime

import pytest

from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput, InvalidType

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def entry(**fields) -> MemoryEntry:
    return MemoryEntry(id="m1", content="x", created_at=NOW, updated_at=NOW, **fields)


@pytest.mark.parametrize(
    ("scope", "fields", "admitted"),
    [
        (Scope("t"), {"tenant": "t", "owner": "o", "namespace": "n"}, True),
        (Scope("t"), {"tenant": "t2"}, False),
        (Scope("t", "o"), {"tenant": "t", "owner": "o"}, True),
        (Scope("t", "o"), {"tenant": "t", "owner": "O"}, False),
        (Scope("t", "o:1"), {"tenant": "t", "owner": "o:10"}, False),
        (Scope("t", "é"), {"tenant": "t", "owner": "e\u0301"}, False),
        (Scope("t", None, "n"), {"tenant": "t", "owner": "any", "namespace": "n"}, True),
        (Scope("t", None, "n"), {"tenant": "t", "namespace": "n "}, False),
        (Scope("t", "o"), {"tenant": "t", "owner": "p", "layer": Layer.GLOBAL}, False),
        (Scope("t", "o", include_shared=True), {"tenant": "t", "owner": "p", "layer": Layer.GLOBAL}, True),
        (Scope("t", "o", include_shared=True), {"tenant": "t", "owner": "p", "layer": Layer.ORGANIZATIONAL}, True),
        (Scope("t", "o", include_shared=True), {"tenant": "t", "owner": "p", "layer": Layer.LONGTERM}, False),
        (Scope("t", "o", include_shared=True), {"tenant": "t2", "owner": "o", "layer": Layer.GLOBAL}, False),
        (Scope("t", "o", "n", True), {"tenant": "t", "owner": "p", "namespace": "m", "layer": Layer.GLOBAL}, False),
    ],
)
def test_a_scope_admits_its_own_and_what_is_shared_if_asked(scope, fields, admitted):
    assert scope.admits(entry(**fields)) is admitted


@pytest.mark.parametrize("name", ["", " ", "a\x00", "\ud83d", "x" * 513])
@pytest.mark.parametrize("part", ["tenant", "owner", "namespace"])
def test_a_scope_refuses_names_that_cannot_identify(part, name):
    with pytest.raises(InvalidInput) as refusal:
        Scope(**{"tenant": "t", part: name})
    assert refusal.value.field == part


def test_a_scope_has_a_tenant():
    with pytest.raises(InvalidType, match="tenant"):
        Scope(None)
