"""Bytes of a text file as an Arrow column of lines, and a column of texts as lines of a file."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LINE_FEED = 0x0A


def end_of_lines(content: bytes) -> int:
    """Where the last whole line ends; a \\r at the very end may be half of an end."""
    return max(content.rfind(b"\n"), content.rfind(b"\r", 0, -1)) + 1


def string_lines(content: bytes) -> Any:
    """Each line without its end; what is not UTF-8 is replaced, as `decode` does.

    The content is whole lines, which end with \\n, \\r\\n or \\r, as `splitlines` has it.
    """
    if b"\r" in content or not _is_utf8(content):
        lines = [line.decode(errors="replace") for line in content.splitlines()]
        return pa.array(lines, pa.string())
    # Line feeds are what lies between values, so each is made the end of an empty value that is
    # left out again: the bytes themselves are never copied.
    octets = np.frombuffer(content, np.uint8)
    feeds = np.flatnonzero(octets == _LINE_FEED).astype(np.int32)
    bounds = np.zeros(2 * len(feeds) + 1, np.int32)
    bounds[1::2], bounds[2::2] = feeds, feeds + 1
    both = pa.Array.from_buffers(
        pa.string(), 2 * len(feeds), [None, pa.py_buffer(bounds), pa.py_buffer(content)]
    )
    return both.take(pa.array(np.arange(0, 2 * len(feeds), 2)))


def _is_utf8(content: bytes) -> bool:
    if content.isascii():
        return True
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def joined_lines(texts: Any, separator: bytes = b"\n") -> memoryview:
    """The bytes of each value with the separator behind it; no value is null."""
    if not len(texts):
        return memoryview(b"")
    ended = pc.binary_join_element_wise(
        texts.cast(pa.binary()), pa.scalar(separator, pa.binary()), b""
    )
    data = ended.buffers()[2]
    ends = np.frombuffer(ended.buffers()[1], np.int32)
    first, last = int(ends[ended.offset]), int(ends[ended.offset + len(ended)])
    return memoryview(data).cast("B")[first:last]
