"""kafka-verifiable-consumer: its settings, and how it stops at a number of records."""

from pathlib import Path

import pytest

from penstock.cli.tools.load import verifiable_consumer
from penstock.cli.tools.load.verifiable_consumer import at_most, settings_of
from penstock.client.values import ConsumerRecord, TopicPartition

NEEDED = ["--topic", "t", "--group-id", "g"]


def settings(*words: str) -> dict[str, object]:
    return settings_of(verifiable_consumer._parser().parse([*NEEDED, *words]))


def test_a_classic_member_chooses_its_assignor_and_session() -> None:
    assert settings("--session-timeout", "9000", "--group-instance-id", "one") == {
        "group.id": "g",
        "group.instance.id": "one",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
        "session.timeout.ms": 9000,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }


def test_a_new_member_leaves_both_to_the_coordinator() -> None:
    words = ["--group-protocol", "CONSUMER", "--group-remote-assignor", "range"]
    assert settings(*words, "--enable-autocommit", "--reset-policy", "latest") == {
        "group.id": "g",
        "group.protocol": "consumer",
        "group.remote.assignor": "range",
        "enable.auto.commit": True,
        "auto.offset.reset": "latest",
    }


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "consumer.properties"
    file.write_text("group.id=other\nfetch.min.bytes=5\n")
    for option in ("--command-config", "--consumer.config"):
        chosen = settings(option, str(file))
        assert (chosen["group.id"], chosen["fetch.min.bytes"]) == ("g", "5")


def record(partition: int, offset: int) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord("t", partition, offset, 0, "CreateTime", None, b"v")


def test_no_more_records_are_taken_than_wanted() -> None:
    polled = {
        TopicPartition("t", number): [record(number, offset) for offset in range(3)]
        for number in range(3)
    }
    assert at_most(polled, None) == polled
    taken = at_most(polled, 4)
    assert {at.partition: len(those) for at, those in taken.items()} == {0: 3, 1: 1}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--group-id", "g"], 'Missing required argument "[topic]"'),
        (["--topic", "t"], 'Missing required argument "[group-id]"'),
        (NEEDED, 'Missing required argument "[bootstrap-server]"'),
        (
            [*NEEDED, "--reset-policy", "never"],
            "Cannot parse argument 'never' of option",
        ),
    ],
)
def test_a_bad_command_line_is_told(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        verifiable_consumer.main(words)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(sentence)
