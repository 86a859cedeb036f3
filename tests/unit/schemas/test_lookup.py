"""Schemas in a folder, found by id."""

import pickle
from pathlib import Path

import pytest

from penstock.schemas.errors import SchemaError, UnknownSchema
from penstock.schemas.lookup import SchemaDirectory, SchemaKind, SchemaLookup


def test_a_file_named_by_the_id_is_found_with_its_kind(tmp_path: Path) -> None:
    (tmp_path / "7.avsc").write_text('"string"')
    (tmp_path / "8.json").write_text('{"type": "object"}')
    (tmp_path / "9.desc").write_bytes(b"\x01\x02")
    (tmp_path / "notes.txt").write_text("not a schema")
    directory = SchemaDirectory(tmp_path)
    assert isinstance(directory, SchemaLookup)
    assert directory.ids() == [7, 8, 9]
    assert (directory.by_id(7).kind, directory.by_id(7).text) == (SchemaKind.AVRO, '"string"')
    assert directory.by_id(8).kind is SchemaKind.JSON
    assert directory.by_id(9).descriptor_set == b"\x01\x02"


def test_a_schema_is_read_once_since_it_cannot_change(tmp_path: Path) -> None:
    file = tmp_path / "1.avsc"
    file.write_text('"int"')
    directory = SchemaDirectory(tmp_path)
    first = directory.by_id(1)
    file.unlink()
    assert directory.by_id(1) is first


def test_it_travels_to_other_processes(tmp_path: Path) -> None:
    (tmp_path / "1.avsc").write_text('"int"')
    copy = pickle.loads(pickle.dumps(SchemaDirectory(tmp_path)))
    assert copy.by_id(1).text == '"int"'


def test_an_unknown_id_is_named_also_in_another_process(tmp_path: Path) -> None:
    with pytest.raises(UnknownSchema, match="no schema with id 5") as caught:
        SchemaDirectory(tmp_path).by_id(5)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_two_files_for_one_id_are_refused(tmp_path: Path) -> None:
    (tmp_path / "1.avsc").write_text('"int"')
    (tmp_path / "1.json").write_text("{}")
    with pytest.raises(SchemaError, match=r"1\.avsc, 1\.json"):
        SchemaDirectory(tmp_path).by_id(1)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="is not a directory"):
        SchemaDirectory(tmp_path / "missing")


def test_a_schema_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "1.avsc").write_text('"int"')
    with pytest.raises(SchemaError, match="schema 1 is AVRO, not PROTOBUF"):
        SchemaDirectory(tmp_path).by_id(1).expect(SchemaKind.PROTOBUF)
