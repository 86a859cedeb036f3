"""Columns of headers, as bytes of records."""

import pyarrow as pa
import pytest

from penstock.errors import InvalidRecord
from penstock.spark.columns.encode import encode_headers

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_a_header_without_a_name_is_refused() -> None:
    column = pa.array([[{"key": None, "value": b"v"}]], HEADERS)
    with pytest.raises(InvalidRecord, match="Null header keys"):
        encode_headers(column)
