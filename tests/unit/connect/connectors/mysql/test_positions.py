"""Positions in the binary log, as offsets keep them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.mysql.positions import BinlogPosition
from penstock.connect.errors.kinds import ConnectError

COUNTS = st.integers(0, 2**40)


@given(COUNTS, COUNTS, COUNTS, st.booleans())
def test_an_offset_brings_its_position_back(pos: int, event: int, row: int, again: bool) -> None:
    position = BinlogPosition(file="b.1", pos=pos, event=event, row=row, is_snapshot=again)
    assert BinlogPosition.of_offset(position.offset(ts_sec=1)) == position


@pytest.mark.parametrize(
    "offset",
    [{}, {"file": "", "pos": 1}, {"file": 1, "pos": 1}, {"file": "b.1", "pos": -1},
     {"file": "b.1", "pos": True}, {"file": "b.1", "pos": 1, "row": "2"}],
)  # fmt: skip
def test_an_offset_of_another_connector_is_refused(offset: dict[str, Any]) -> None:
    with pytest.raises(ConnectError, match="none of this connector"):
        BinlogPosition.of_offset(offset)
