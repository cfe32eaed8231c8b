from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest

from lamina.domain.api_token import token_digest
from lamina.testing.server_contract.material import NOW, at, token


@pytest.mark.parametrize(
    ("changes", "after", "valid"),
    [
        ({}, 10**9, True),
        ({"expires_at": at(10)}, 9.999, True),
        ({"expires_at": at(10)}, 10, False),
        ({"revoked_at": at(5)}, 0, False),
        ({"revoked_at": at(5), "expires_at": at(10)}, 6, False),
    ],
)
def test_a_token_is_valid_until_it_is_revoked_or_has_expired(changes, after, valid):
    assert token(**changes).is_valid_at(at(after)) is valid


@pytest.mark.parametrize(("used", "after", "noted"), [(None, 0, False), (0, 0, True), (0, 59.9, True), (0, 60, False)])
def test_a_use_counts_as_noted_for_a_minute(used, after, noted):
    assert token(last_used_at=None if used is None else at(used)).is_use_noted_at(at(after)) is noted


def test_the_digest_is_the_sha256_of_the_secret_whatever_it_holds():
    assert token_digest("lamina_x") == hashlib.sha256(b"lamina_x").hexdigest()
    hostile = ["", "\x00", "\ud800", "ü" * 10_000, "u\u0308"]
    assert len({token_digest(each) for each in hostile}) == len(hostile)


def test_the_digest_and_the_times_are_the_tokens_own():
    changed = token().replace(expires_at=NOW + timedelta(days=1))
    assert (changed.id, changed.digest) == (token().id, token().digest)
    assert token().expires_at is None
