"""What a follower answers from its rows, without a topic to follow."""

from pathlib import Path

from penstock.streams import BYTES, LONG, STRING
from penstock.streams.following.follower import StoreView
from penstock.streams.following.rows import RowFile
from penstock.streams.plan.nodes import StoreSpec


def test_keys_are_found_by_their_prefix(tmp_path: Path) -> None:
    store = StoreSpec(name="s", kind="rows", node="n", key_serde=STRING, value_serde=LONG)
    rows = {key: (LONG.serialize(number), 5) for number, key in enumerate((b"a", b"ab", b"b"))}
    file = RowFile(tmp_path / "s.db")
    file.apply(rows, {0: 3})
    with file.reading() as read:
        view = StoreView(read, store, 0)
        assert list(view.prefix_scan("a")) == [("a", 0), ("ab", 1)]
        assert list(view.prefix_scan(b"ab", BYTES)) == [("ab", 1)]
        assert list(view.prefix_scan("c")) == []
    file.close()
