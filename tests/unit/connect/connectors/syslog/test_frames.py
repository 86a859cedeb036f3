"""Messages out of a stream: counted, in lines, too long, and in pieces of any size."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.syslog.frames import SyslogFrames


def fed(data: bytes, size_max: int = 10, step: int = 1) -> list[bytes]:
    frames = SyslogFrames(size_max)
    found = []
    for at in range(0, len(data), step):
        found += frames.feed(data[at : at + step])
    return found + frames.end()


def test_lines_and_counted_messages_may_be_mixed() -> None:
    data = b"<1>a\r\n5 <1>bc<1>d\n\n4 <1>e<1>f"
    assert fed(data) == [b"<1>a", b"<1>bc", b"<1>d", b"<1>e", b"<1>f"]


def test_what_is_too_long_is_cut_and_the_rest_is_left_out() -> None:
    assert fed(b"<1>" + b"x" * 30 + b"\n<1>a\n") == [b"<1>xxxxxxx", b"<1>a"]
    assert fed(b"33 <1>" + b"x" * 30 + b"<1>a\n") == [b"<1>xxxxxxx", b"<1>a"]


def test_a_number_that_is_no_count_begins_a_line() -> None:
    assert fed(b"12x\n<1>a\n") == [b"12x", b"<1>a"]
    assert fed(b"1234567890123\n", 99) == [b"1234567890123"]


@given(st.binary(max_size=80), st.integers(1, 20))
def test_pieces_of_any_size_give_the_same(data: bytes, step: int) -> None:
    whole, pieces = fed(data + b"\n", step=200), fed(data + b"\n", step=step)
    assert all(len(one) <= 10 for one in pieces)
    assert whole == pieces
