"""kafka-storage: which credential a command line means, and what it refuses."""

from pathlib import Path

import pytest

from penstock.cli.tools.security import storage
from penstock.cli.tools.security.storage import parse_scram
from penstock.errors import CommandError, UnacceptableCredential

ID = "AAAAAAAAQACAAAAAAAAAAQ"


def test_a_credential_is_read_as_kafka_writes_it() -> None:
    user, made = parse_scram("SCRAM-SHA-512=[name=alice,iterations=8192,password=a=b]")
    assert (user, made.mechanism, made.iterations) == ("alice", "SCRAM-SHA-512", 8192)
    assert made.password == "a=b"
    assert "a=b" not in repr(made)
    user, quoted = parse_scram('SCRAM-SHA-256=[name="al",password="x,y"]')
    assert (user, quoted.password, quoted.iterations) == ("al", "x,y", 4096)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SCRAM-SHA-1=[name=a,password=hidden]",
        "SCRAM-SHA-256=[password=hidden]",
        "SCRAM-SHA-256=[name=a]",
        "SCRAM-SHA-256=[name=a,iterations=many,password=hidden]",
    ],
)
def test_what_is_no_credential_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(CommandError) as refused:
        parse_scram(text)
    assert "hidden" not in str(refused.value)


def words(directory: Path, *more: str) -> list[str]:
    config = directory / "server.properties"
    config.write_text(f"log.dirs={directory / 'data'}\n")
    return ["format", "--config", str(config), "--cluster-id", ID, *more]


def test_a_directory_is_formatted_once(tmp_path: Path) -> None:
    assert storage.main(words(tmp_path)) == 0
    with pytest.raises(CommandError, match="is already formatted"):
        storage.main(words(tmp_path))
    assert storage.main(words(tmp_path, "--ignore-formatted")) == 0


def test_bad_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="valid UUID"):
        storage.main([*words(tmp_path)[:-1], "no id"])
    few = "SCRAM-SHA-256=[name=a,iterations=1,password=p]"
    with pytest.raises(UnacceptableCredential):
        storage.main(words(tmp_path, "--add-scram", few))


def test_random_ids_are_ids(capsys: pytest.CaptureFixture[str]) -> None:
    assert storage.main(["random-uuid"]) == 0
    assert len(capsys.readouterr().out.strip()) == 22
