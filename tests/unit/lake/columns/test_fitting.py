"""Records beside the table's columns: whatever comes, nothing is lost and all tasks agree."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.lake.columns.test_json_values import meaning, objects

from penstock.lake.columns.agreement import (
    Agreement,
    agreed_columns,
    forget_agreements,
    known_columns,
    remember_columns,
)
from penstock.lake.columns.fitting import Fitted, fit_record, grow
from penstock.lake.columns.json_values import parse
from penstock.lake.columns.rules import AgreedColumns, Rules, rules_of
from penstock.lake.columns.types import fitted_array
from penstock.lake.errors import IncompatibleSchema
from penstock.lake.spec import TableSpec, parse_partitioning

FORMATS = ("delta", "iceberg", "parquet")
formats = st.sampled_from(FORMATS)


def record_of(value: dict[str, Any]) -> Any:
    """As it comes out of a JSON text."""
    return parse(json.dumps(value).encode())


def fit_all(
    records: list[dict[str, Any]], columns: AgreedColumns, rules: Rules
) -> tuple[AgreedColumns, list[Fitted]]:
    """One after the other; a record that does not fit changes nothing."""
    found = []
    for record in records:
        fitted = fit_record(record_of(record), columns, rules)
        found.append(fitted)
        if not fitted.misfits:
            columns = fitted.columns
    return columns, found


@given(st.lists(objects, max_size=8), formats)
def test_what_was_taken_fits_the_columns_whatever_came_after_it(
    records: list[dict[str, Any]], lake_format: str
) -> None:
    rules = rules_of(TableSpec(directory="/t", format=lake_format), pa.schema([]))
    columns, found = fit_all(records, AgreedColumns(), rules)
    for record, fitted in zip(records, found, strict=True):
        if not fitted.misfits:
            row = {
                one.name: fitted_array([fitted.values.get(one.name)], one.type)[0].as_py()
                for one in columns.schema
            }
            given_ = {rules.column(name): value for name, value in record.items()}
            assert meaning(row) == meaning(given_)


@given(st.lists(objects, max_size=8), formats)
def test_a_batch_that_is_replayed_sets_the_same_records_aside(
    records: list[dict[str, Any]], lake_format: str
) -> None:
    """After a crash between the table's commit and that of the dead letters."""
    spec = TableSpec(directory="/t", format=lake_format)
    columns, found = fit_all(records, AgreedColumns(), rules_of(spec, pa.schema([])))
    again, replayed = fit_all(records, columns, rules_of(spec, columns.schema))
    assert [bool(one.misfits) for one in replayed] == [bool(one.misfits) for one in found]
    assert again == columns


@given(st.lists(st.tuples(st.integers(0, 2), objects), max_size=8), formats)
def test_tasks_that_write_at_once_agree(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[int, dict[str, Any]]],
    lake_format: str,
) -> None:
    place = tmp_path_factory.getbasetemp() / uuid4().hex
    spec = TableSpec(directory=str(place), format=lake_format)
    tasks = [Agreement(spec, query_id="q", batch_id=7) for _ in range(3)]
    taken: list[Fitted] = []
    for task, value in drawn:
        record = record_of(value)
        last: list[Fitted] = []

        def needed(columns: AgreedColumns, record: Any = record, last: Any = last) -> AgreedColumns:
            last[:] = [fit_record(record, columns, tasks[0].rules)]
            return columns if last[0].misfits else last[0].columns

        tasks[task].admit(needed)
        taken += [one for one in last if not one.misfits]
    agreed = agreed_columns(spec, "q", 7)
    for fitted in taken:
        for name, value in fitted.values.items():
            if name in agreed.schema.names:
                fitted_array([value], agreed.schema.field(name).type)  # Raises if it does not fit.


def columns_of(**kinds: pa.DataType) -> AgreedColumns:
    return AgreedColumns(schema=pa.schema(list(kinds.items())))


def fitted_type(value: Any, kind: pa.DataType, lake_format: str) -> pa.DataType | None:
    """The column's type with this value; None: it does not fit."""
    columns = columns_of(a=kind)
    rules = Rules(lake_format=lake_format, table=columns.schema)
    fitted = fit_record(record_of({"a": value}), columns, rules)
    return None if fitted.misfits else fitted.columns.schema.field("a").type


@pytest.mark.parametrize("lake_format", FORMATS)
@pytest.mark.parametrize(
    ("value", "kind", "wide"),
    [
        (300, pa.int8(), pa.int64()),
        (2**40, pa.int32(), pa.int64()),
        (5, pa.int32(), pa.int32()),
        (2**24 + 1, pa.float32(), pa.float64()),
        (1e300, pa.float32(), pa.float64()),
        (0.1, pa.float32(), pa.float32()),
        (12345678.25, pa.decimal128(9, 2), pa.decimal128(10, 2)),
        ("12.5", pa.decimal128(9, 2), pa.decimal128(9, 2)),
        (2**40, pa.struct([("b", pa.int32())]), None),
        ({"b": 2**40}, pa.struct([("b", pa.int32())]), pa.struct([("b", pa.int64())])),
        ([2**40], pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int64()))),
        ({"x": 1}, pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int32())),
        (2**63, pa.int64(), None),
        ([], pa.int64(), pa.int64()),
        ({}, pa.int64(), pa.int64()),
        ("x", pa.binary(), pa.binary()),
        ("2026-13-01", pa.date32(), None),
        ("2026-12-01", pa.date32(), pa.date32()),
        ("2026-12-01T00:00:00+01:00", pa.timestamp("us"), None),
        ("12,5", pa.decimal128(9, 2), None),
        ("NaN", pa.decimal128(9, 2), None),
    ],
)
def test_columns_widen_as_far_as_every_format_lets_them(
    lake_format: str, value: Any, kind: pa.DataType, wide: pa.DataType | None
) -> None:
    if value == 2**63 and lake_format != "iceberg":
        wide = pa.float64()  # A power of two is exact in a double.
    assert fitted_type(value, kind, lake_format) == wide


@pytest.mark.parametrize(
    ("value", "kind", "wide"),
    [
        (1.5, pa.int64(), pa.float64()),
        (1.125, pa.decimal128(9, 2), pa.decimal128(10, 3)),
        ([1.5], pa.list_(pa.int64()), pa.list_(pa.field("element", pa.float64()))),
    ],
)
def test_what_iceberg_does_not_promote_stays_as_it_is(
    value: Any, kind: pa.DataType, wide: pa.DataType
) -> None:
    assert fitted_type(value, kind, "delta") == fitted_type(value, kind, "parquet") == wide
    assert fitted_type(value, kind, "iceberg") is None


def test_iceberg_has_no_two_columns_under_one_path() -> None:
    columns = columns_of(**{"a.b": pa.int64()})
    record = record_of({"a": {"b": 1}, "c.d": 2})
    iceberg = fit_record(record, columns, Rules(lake_format="iceberg", table=columns.schema))
    assert list(iceberg.misfits) == ["a"]
    assert "c.d" in iceberg.columns.schema.names
    assert not fit_record(record, columns, Rules(lake_format="delta", table=pa.schema([]))).misfits


def test_a_column_that_names_folders_stays_one_that_can() -> None:
    spec = TableSpec(
        directory="/t", format="delta", partition_by=parse_partitioning("land, date(timestamp)")
    )
    rules = rules_of(spec, pa.schema([]))
    found = fit_all(
        [{"land": {"x": 1}}, {"land": 1.5}, {"LAND": 1}, {"land": 1.5}, {"date": 5}],
        AgreedColumns(),
        rules,
    )
    assert [list(one.misfits) for one in found[1]] == [["land"], ["land"], [], ["land"], []]
    assert found[0].schema == pa.schema([("land", pa.int64()), ("value_date", pa.int64())])


def test_a_column_with_large_whole_numbers_never_becomes_one_of_doubles() -> None:
    rules = Rules(lake_format="delta", table=pa.schema([]))
    columns = grow(columns_of(n=pa.int64()), pa.schema([]), [("n",)], rules)
    with pytest.raises(IncompatibleSchema, match=r"beyond 2\^53"):
        grow(columns, pa.schema([("n", pa.float64())]), (), rules)
    with pytest.raises(IncompatibleSchema, match=r"a whole number beyond 2\^53"):
        grow(columns_of(n=pa.float64()), pa.schema([("n", pa.int64())]), [("n",)], rules)


def test_numbers_keep_their_digits_in_decimals() -> None:
    array = fitted_array([Decimal("1.10"), 7], pa.decimal128(9, 2))
    assert array.to_pylist() == [Decimal("1.10"), Decimal("7.00")]


def test_what_is_agreed_outlives_the_tasks_and_not_the_query(tmp_path: Path) -> None:
    spec = TableSpec(directory=str(tmp_path), format="delta")
    large = columns_of(n=pa.int64())
    remember_columns(spec, AgreedColumns(schema=large.schema, exact=frozenset({("n",)})))
    assert known_columns(spec).exact == {("n",)}
    first = Agreement(spec, query_id="q", batch_id=1)
    first.admit(lambda columns: grow(columns, pa.schema([("s", pa.string())]), (), first.rules))
    second = Agreement(spec, query_id="q", batch_id=1)
    assert second.columns == first.columns
    assert second.columns.exact == {("n",)}
    with pytest.raises(IncompatibleSchema, match="column s is string"):
        second.admit(lambda columns: grow(columns, pa.schema([("s", pa.int64())]), (), first.rules))
    assert Agreement(spec, query_id="q", batch_id=2).columns.schema == large.schema
    forget_agreements(spec)
    assert Agreement(spec, query_id="q", batch_id=1).columns.schema == large.schema
