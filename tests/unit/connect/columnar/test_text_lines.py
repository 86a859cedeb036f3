"""Lines of bytes as columns: the same as Python's own splitting and decoding."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.columnar.text_lines import end_of_lines, joined_lines, string_lines

_BYTES = st.lists(
    st.sampled_from([b"a", b"", b"\xc3\xa9", b"\xff", b"\n", b"\r", b"\r\n", b"long text"])
).map(b"".join)


def whole_lines(content: bytes) -> list[bytes]:
    """The ordinary lane's rule."""
    lines = content.splitlines(keepends=True)
    return lines[:-1] if lines and not lines[-1].endswith(b"\n") else lines


@given(_BYTES)
def test_whole_lines_are_those_of_the_ordinary_lane(content: bytes) -> None:
    expected = whole_lines(content)
    end = end_of_lines(content)
    assert content[:end] == b"".join(expected)
    found = string_lines(content[:end]).to_pylist()
    assert found == [line.rstrip(b"\r\n").decode(errors="replace") for line in expected]


@given(_BYTES)
def test_a_separator_stands_behind_each_value(content: bytes) -> None:
    values = string_lines(content[: end_of_lines(content)])
    expected = b"".join(text.encode() + b"|" for text in values.to_pylist())
    assert joined_lines(values, b"|") == expected
    assert joined_lines(values.slice(1), b"|") == b"".join(
        text.encode() + b"|" for text in values.to_pylist()[1:]
    )
