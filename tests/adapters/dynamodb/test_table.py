"""What the emulator does not do: a service that is busy. A client that answers as it does stands in for it."""

import pytest
from botocore.exceptions import ClientError

from lamina.adapters._shared.records import Commit, ControlChange, Stale
from lamina.adapters.dynamodb.failures import translated
from lamina.adapters.dynamodb.table import Table
from lamina.adapters.dynamodb.transaction import Transaction
from lamina.errors import AdapterError, AdapterUnavailable


class BusyClient:
    """Reads one key at a time, and none at every other request; refuses transactions as it is told."""

    def __init__(self, *refusals):
        self.requests = []
        self.tokens = []
        self.refusals = list(refusals)

    def batch_get_item(self, *, RequestItems):  # noqa: N803 - the API's name
        [(name, asked)] = RequestItems.items()
        assert asked["ConsistentRead"] is True
        self.requests.append(asked["Keys"])
        taken = 0 if len(self.requests) % 2 else 1
        left = asked["Keys"][taken:]
        return {
            "Responses": {name: [{**key, "found": {"BOOL": True}} for key in asked["Keys"][:taken]]},
            "UnprocessedKeys": {name: {"Keys": left}} if left else {},
        }

    def transact_write_items(self, *, TransactItems, ClientRequestToken):  # noqa: N803 - the API's names
        self.tokens.append(ClientRequestToken)
        if self.refusals:
            raise self.refusals.pop(0)


def refusal(code, *reasons):
    reasons = [{"Code": each} for each in reasons]
    response = {"Error": {"Code": code, "Message": "pay-roll"}, "CancellationReasons": reasons}
    return ClientError(response, "TransactWriteItems")


COMMIT = Commit(tenant="acme", changes=(), controls=(ControlChange(key="key", old=None, value="value"),))


def test_reads_that_a_busy_stand_in_answers_piece_by_piece_are_asked_again():
    client = BusyClient()
    found = Table(client, "memories").load(["r#1", "r#2", "r#3"])
    assert sorted(found) == ["r#1", "r#2", "r#3"]


def test_reads_that_a_busy_stand_in_never_answers_end(monkeypatch):
    monkeypatch.setattr("lamina.adapters.dynamodb.table._PATIENCE", 0)
    with pytest.raises(AdapterUnavailable, match="no more reads"):
        Table(BusyClient(), "memories").load(["r#1"])


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (["None", "ConditionalCheckFailed"], Stale),
        (["TransactionConflict", "None"], Stale),
        (["ThrottlingError", "None"], AdapterUnavailable),
        (["None", "ProvisionedThroughputExceeded"], AdapterUnavailable),
        (["ValidationError"], AdapterError),
        ([], AdapterError),
    ],
)
def test_what_a_stand_in_says_of_a_cancelled_transaction_is_told_apart(reasons, expected):
    client = BusyClient(refusal("TransactionCanceledException", *reasons))
    with pytest.raises(expected) as raised:
        Transaction("memories", COMMIT).send(client)
    assert type(raised.value) is expected
    assert "pay-roll" not in str(raised.value)


def test_a_transaction_that_a_stand_in_has_under_way_is_sent_again_under_its_token():
    client = BusyClient(refusal("TransactionInProgressException"), refusal("TransactionInProgressException"))
    Transaction("memories", COMMIT).send(client)
    assert len(client.tokens) == 3
    assert len(set(client.tokens)) == 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ThrottlingException", AdapterUnavailable),
        ("ProvisionedThroughputExceededException", AdapterUnavailable),
        ("RequestLimitExceeded", AdapterUnavailable),
        ("InternalServerError", AdapterUnavailable),
        ("ExpiredTokenException", AdapterError),
        ("AccessDeniedException", AdapterError),
        ("ValidationException", AdapterError),
    ],
)
def test_what_a_stand_in_refuses_is_told_apart_and_not_quoted(code, expected):
    with pytest.raises(expected) as raised, translated("memories in eu-central-1"):
        raise refusal(code)
    assert type(raised.value) is expected
    assert "pay-roll" not in str(raised.value)
    assert raised.value.__cause__ is None
