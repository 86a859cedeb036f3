"""kafka-transactions: its rules, its tables, and what it takes for a hanging transaction."""

import pytest

from penstock.cli.tools.transactions import transactions
from penstock.cli.tools.transactions.hanging import PartitionTransaction, without_end
from penstock.cli.tools.transactions.table import table
from penstock.cli.tools.transactions.transactions import description_row
from penstock.client.operations.brokers import ProducerDescription
from penstock.client.operations.transactions import TransactionDescription
from penstock.client.values import TopicPartition
from penstock.errors import CommandError

ABORT = ["abort", "--topic", "t", "--partition", "0"]
SERVER = ["--bootstrap-server", "localhost:1"]
A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def transaction(*partitions: TopicPartition, started_ms: int | None = 5) -> TransactionDescription:
    return TransactionDescription(
        transactional_id="pay",
        coordinator_id=2,
        producer_id=7,
        producer_epoch=3,
        state="Ongoing",
        timeout_ms=60_000,
        started_ms=started_ms,
        partitions=partitions,
    )


def open_in(partition: TopicPartition, producer_id: int) -> PartitionTransaction:
    producer = ProducerDescription(
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=-1,
        last_sequence=0,
        last_timestamp_ms=0,
        transaction_start_offset=0,
    )
    return PartitionTransaction(partition, producer)


def test_a_transaction_is_hanging_when_no_coordinator_will_end_it() -> None:
    candidates = [open_in(A, 7), open_in(B, 7), open_in(A, 8), open_in(A, 9)]
    ids = {7: "pay", 9: "expired"}
    described = {"pay": transaction(A), "expired": None}
    hanging = without_end(candidates, ids, described)
    assert [(one.partition, one.producer.producer_id) for one in hanging] == [
        (B, 7),
        (A, 8),
        (A, 9),
    ]


def test_a_transaction_is_described_with_its_age() -> None:
    row = description_row(transaction(A, B), now_ms=25)
    assert row == (2, "pay", 7, 3, "Ongoing", 60_000, 5, 20, "a-0,b-1")
    assert description_row(transaction(started_ms=None), now_ms=25)[6:] == (None, None, "")


def test_tables_have_a_tab_behind_every_padded_cell() -> None:
    assert table(("Id", "State"), [("long-id", None), ("b", "Ongoing")]).split("\n") == [
        "Id     \tState  \t",
        "long-id\tNone   \t",
        "b      \tOngoing\t",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["find-hanging"], "requires either --topic or --broker-id"),
        (["find-hanging", "--broker-id", "0", "--partition", "1"], "requires --topic"),
        (ABORT, "must be identified either with"),
        (
            [*ABORT, "--producer-id", "1"],
            "Missing required argument --producer-epoch",
        ),
        (
            [*ABORT, "--producer-id", "1", "--producer-epoch", "2"],
            "Missing required argument --coordinator-epoch",
        ),
    ],
)
def test_what_is_missing_is_told_before_a_broker_is_asked(words: list[str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        transactions.main([*SERVER, *words])


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["list"],
        [*SERVER, "describe"],
        [*SERVER, "bury"],
        [*SERVER, "abort", "--topic", "t", "--partition", "x"],
    ],
)
def test_a_bad_command_line_shows_the_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        transactions.main(words)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("usage: kafka-transactions")


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        ([], "too few arguments"),
        (["describe"], "argument --transactional-id is required"),
        (["list", "--bogus"], "unrecognized arguments: '--bogus'"),
        (["dance"], "invalid choice: 'dance' (choose from"),
        (
            ["abort", "--topic", "t", "--partition", "x"],
            "argument --partition: could not convert 'x' to Integer",
        ),
    ],
)
def test_mistakes_are_told_as_kafkas_tool_tells_them(
    capsys: pytest.CaptureFixture[str], argv: list[str], complaint: str
) -> None:
    with pytest.raises(SystemExit) as end:
        transactions.main(["--bootstrap-server", "h:1", *argv])
    assert end.value.code == 1
    assert f": error: {complaint}" in capsys.readouterr().err
