"""Files that nobody else may read."""

from pathlib import Path

import pytest

from penstock.security.private_files import write_private


def test_a_private_file_is_its_owners_and_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    write_private(file, "one")
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        write_private(file, "two")
    assert file.read_text() == "one"


def test_a_file_that_was_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("something longer than the next")
    file.chmod(0o644)
    write_private(file, b"two", may_replace=True)
    assert file.read_text() == "two"
    assert file.stat().st_mode & 0o777 == 0o600
