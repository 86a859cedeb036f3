"""Rows and the offsets they include change together, and are there again."""

from pathlib import Path

from penstock.streams.following.rows import RowFile


def test_a_reader_sees_rows_and_offsets_of_one_moment(tmp_path: Path) -> None:
    file = RowFile(tmp_path / "rows.db")
    file.apply({b"a": (b"1", 5), b"b": (b"2", 6)}, {0: 10})
    file.apply({b"a": (None, 7), b"c": (b"3", 8)}, {0: 12, 1: 4})
    with file.reading() as rows:
        assert rows.offsets == {0: 12, 1: 4}
        assert rows.get(b"a") is None and rows.get(b"c") == (b"c", b"3", 8)
        assert [row[0] for row in rows.between(None, None)] == [b"b", b"c"]
        assert [row[0] for row in rows.between(b"b", b"b")] == [b"b"]
    file.close()
    again = RowFile(tmp_path / "rows.db")
    with again.reading() as rows:
        assert rows.offsets == {0: 12, 1: 4} and rows.get(b"b") == (b"b", b"2", 6)
    again.clear()
    with again.reading() as rows:
        assert rows.offsets == {} and not list(rows.between(None, None))
    again.close()
