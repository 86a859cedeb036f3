"""`penstock schema`: command lines that cannot mean anything, and a registry that is not there."""

import pytest

from penstock.cli.main import main
from penstock.cli.tools.schema.schema import pretty


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["frobnicate"], "Say what to do: penstock schema register|show"),
        (["register", "orders"], "Write it as: penstock schema register SUBJECT FILE"),
        (["show"], "Write it as: penstock schema show SUBJECT or --id NUMBER"),
        (["show", "orders", "--id", "1"], "Write it as: penstock schema show"),
        (["list", "a", "b"], "Write it as: penstock schema list [SUBJECT]"),
        (["list", "--permanent"], "--permanent belongs to `penstock schema delete`"),
        (["diff", "a", "--with-version", "x"], "--with-version x is no number"),
        (["register", "a", "b.avsc", "--type", "XML"], "type"),
    ],
)
def test_what_cannot_be_meant_is_told(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["schema", *words])
    assert ended.value.code == 1
    assert sentence in capsys.readouterr().err.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["list", "--registry", "http://127.0.0.1:1"], "no schema registry answers"),
        (["list", "--registry", "ftp://here"], "does not begin with http"),
        (["register", "a", "nowhere.avsc"], "nowhere.avsc cannot be read: No such file"),
        (["register", "a", "what.txt"], "write --type AVRO, JSON or PROTOBUF"),
        (["import", "nowhere"], "nowhere cannot be read"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", *words]) == 1
    told = capsys.readouterr().err
    assert sentence in told
    assert len(told.splitlines()) == 1


def test_json_is_printed_for_people_and_protobuf_as_it_is() -> None:
    assert pretty({"schema": '{"type":"string"}'}) == '{\n  "type": "string"\n}'
    proto = 'syntax = "proto3";\n'
    assert pretty({"schema": proto, "schemaType": "PROTOBUF"}) == proto.rstrip("\n")
