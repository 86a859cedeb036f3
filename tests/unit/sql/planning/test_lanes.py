"""Lanes: queries in columns write what their steps write, to the byte, whatever comes."""

import json
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.columns import compile as compiling
from penstock.streams.plan.lanes import has_lane
from penstock.streams.plan.stages import cut
from penstock.streams.spark import lane_rows, processor
from penstock.streams.tasks.batch import RowOut

from .rig import (
    Record,
    StatefulTask,
    batches_of,
    by_topic,
    cuts,
    planned,
    stage_work,
    table_of,
    without_lane,
    written_by_steps,
    written_in_lane,
)

COLUMNS = "K STRING KEY, A INTEGER, B BIGINT, C DOUBLE, S STRING, T BOOLEAN"
JSON = f"CREATE STREAM I ({COLUMNS}) WITH (kafka_topic='s', value_format='JSON');"
LINES = f"CREATE STREAM I ({COLUMNS}) WITH (kafka_topic='s', value_format='DELIMITED');"
BARE = "CREATE STREAM I (K BIGINT KEY, S STRING) WITH (kafka_topic='s', value_format='KAFKA');"


@pytest.fixture(autouse=True, scope="module")
def still_clock() -> Any:
    """The clock is in what is told of failures."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (lane_rows, processor):
            patch.setattr(module, "wall_clock_ms", lambda: 7)
        yield


def same_both_ways(text: str, records: list[Record], rows: int = 1000) -> list[dict[str, Any]]:
    try:
        work = stage_work(planned(text))
    except StatementRefused:
        reject()  # Types that do not fit, as in an addition of a literal that is NULL.
    assert has_lane(work.topology, merges=True)
    batches = batches_of(table_of(records), rows)
    made = written_in_lane(work, batches)
    assert made == written_by_steps(without_lane(work), batches)
    return made


# Which queries

STREAM = f"{JSON} CREATE STREAM O AS "
TABLE = f"{JSON} CREATE TABLE O AS "
LINE_KEYS = f"{JSON} CREATE TABLE O WITH (key_format='DELIMITED') AS "
LATER = "CREATE STREAM I (K STRING KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON', "


@pytest.mark.parametrize(
    ("text", "goes"),
    [
        (f"{STREAM} SELECT * FROM I;", True),
        (f"{STREAM} SELECT K, SPLIT(S, ',')[1] AS P FROM I WHERE S LIKE '%_';", True),
        (f"{STREAM} SELECT K, RANDOM() AS P FROM I;", False),
        (f"{STREAM} SELECT K, ARRAY[A] AS P FROM I;", False),
        (f"{STREAM} SELECT K, EXPLODE(ARRAY[A]) AS P FROM I;", False),
        (f"{LATER} timestamp='A'); CREATE STREAM O AS SELECT * FROM I;", False),
        (f"{TABLE} SELECT K, COUNT(*) AS N FROM I GROUP BY K;", True),
        (f"{TABLE} SELECT K, COUNT(*) AS N FROM I GROUP BY K HAVING COUNT(*) > 1;", False),
        (f"{TABLE} SELECT K, TOPK(A, 2) AS N FROM I GROUP BY K;", False),
        (f"{TABLE} SELECT K, COUNT(*) AS N FROM I WINDOW SESSION (1 HOURS) GROUP BY K;", False),
        (f"{TABLE} SELECT A, COUNT(*) AS N FROM I GROUP BY A;", False),
        (f"{LINE_KEYS} SELECT K, COUNT(*) AS N FROM I GROUP BY K;", False),
    ],
)
def test_a_query_goes_through_a_lane_or_not(text: str, goes: bool) -> None:
    assert all(has_lane(stage.topology, merges=True) == goes for stage in cut(planned(text)))


def test_results_that_may_not_merge_go_step_by_step() -> None:
    topology = planned(f"{TABLE} SELECT K, COUNT(*) AS N FROM I GROUP BY K;")
    assert not has_lane(topology, merges=False)


# Random queries

TEXTS = st.sampled_from(["", "a", "Ab", "ab", "b%", "ß", "é€", "😀x", '"', "\\", "\n", " x ", "7"])
WHOLE = st.sampled_from([0, 1, -1, 7, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63)])
NUMBERS = st.one_of(WHOLE, st.integers(-20, 20))
DOUBLES = st.sampled_from([0.0, -0.0, 1.5, -2.25, 1e7, 1e-4, 1e300, 3.0, 123456789.125])
ODD = st.sampled_from([2**70, "5", "x", 1.5, True, None, [1], {"a": 1}, 1e400])


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def wholes(depth: int) -> st.SearchStrategy[str]:
    leaf = st.one_of(st.sampled_from(["A", "B", "ROWTIME"]), st.integers(-3, 3).map(str))
    leaf |= st.just("2147483647") | st.just("9223372036854775807")
    if depth == 0:
        return leaf
    inner = wholes(depth - 1)
    signs = st.sampled_from(["+", "-", "*", "/", "%"])
    return st.one_of(
        leaf,
        st.tuples(inner, signs, inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda one: f"(-({one}))"),
        texts(depth - 1).map(lambda one: f"LEN({one})"),
        inner.map(lambda one: f"ABS({one})"),
        st.tuples(truths(depth - 1), inner, inner).map(
            lambda p: f"CASE WHEN {p[0]} THEN {p[1]} ELSE {p[2]} END"
        ),
        inner.map(lambda one: f"CAST({one} AS BIGINT)"),
        st.tuples(inner, inner).map(
            lambda p: f"IFNULL(CAST({p[0]} AS BIGINT), CAST({p[1]} AS BIGINT))"
        ),
        texts(depth - 1).map(lambda one: f"CAST({one} AS INTEGER)"),
    )


def doubles(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from(["C", "1.5E0", "0E0", "2.5E-1"])
    if depth == 0:
        return leaf
    inner = doubles(depth - 1)
    mixed = st.one_of(inner, wholes(depth - 1), st.just("0.5"))
    signs = st.sampled_from(["+", "-", "*", "/", "%"])
    return st.one_of(
        leaf,
        st.tuples(inner, signs, mixed).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        wholes(depth - 1).map(lambda one: f"CAST({one} AS DOUBLE)"),
        st.tuples(truths(depth - 1), inner, wholes(depth - 1)).map(
            lambda p: f"CASE WHEN {p[0]} THEN {p[1]} ELSE {p[2]} END"
        ),
    )


def texts(depth: int) -> st.SearchStrategy[str]:
    leaf = st.one_of(st.sampled_from(["S", "K"]), TEXTS.map(quoted))
    if depth == 0:
        return leaf
    inner = texts(depth - 1)
    places = st.integers(-2, 4)
    return st.one_of(
        leaf,
        inner.map(lambda one: f"UCASE({one})"),
        inner.map(lambda one: f"LCASE({one})"),
        inner.map(lambda one: f"TRIM({one})"),
        st.tuples(inner, inner).map(lambda p: f"CONCAT({p[0]}, {p[1]}, '!')"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]} + {p[1]})"),
        st.tuples(inner, places).map(lambda p: f"SUBSTRING({p[0]}, {p[1]})"),
        st.tuples(inner, places, places).map(lambda p: f"SUBSTRING({p[0]}, {p[1]}, {p[2]})"),
        st.tuples(inner, inner).map(lambda p: f"COALESCE({p[0]}, {p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"NULLIF({p[0]}, {p[1]})"),
        st.tuples(truths(depth - 1), inner).map(lambda p: f"CASE WHEN {p[0]} THEN {p[1]} END"),
        wholes(depth - 1).map(lambda one: f"CAST({one} AS STRING)"),
        doubles(depth - 1).map(lambda one: f"CAST({one} AS STRING)"),
        inner.map(lambda one: f"CASE {one} WHEN 'a' THEN 'x' WHEN S THEN {one} ELSE 'z' END"),
    )


def truths(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from(["T", "TRUE", "(A IS NULL)", "(S IS NOT NULL)", "(K = 'a')"])
    if depth == 0:
        return leaf
    sign = st.sampled_from(
        ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
    )
    inner, whole, text = truths(depth - 1), wholes(depth - 1), texts(depth - 1)
    double = doubles(depth - 1)
    number = st.one_of(whole, double, st.just("0.5"))
    likes = st.sampled_from(["'a%'", "'%b'", "'%b%'", "'a_'", "'a'", "'%'", "'a%b%c'"])
    negated = st.sampled_from(["", "NOT "])
    return st.one_of(
        leaf,
        st.tuples(number, sign, number).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(text, sign, text).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(
            lambda p: f"({p[0]} {p[1]} {p[2]})"
        ),
        inner.map(lambda one: f"(NOT {one})"),
        st.tuples(text, negated, likes).map(lambda p: f"({p[0]} {p[1]}LIKE {p[2]})"),
        st.tuples(whole, negated, whole).map(lambda p: f"({p[0]} {p[1]}BETWEEN 0 AND {p[2]})"),
        st.tuples(text, negated, text).map(lambda p: f"({p[0]} {p[1]}IN ('a', {p[2]}))"),
        st.tuples(whole, negated).map(lambda p: f"({p[0]} {p[1]}IN (1, 2, 7))"),
    )


@st.composite
def objects(draw: st.DrawFn) -> bytes | None:
    """The JSON of a row; now and then of something else."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([None, b"", b"{", b"[]", b"\xff", b'{"A":1} x', b"null"]))
    kinds = {"A": NUMBERS, "B": NUMBERS, "C": DOUBLES, "S": TEXTS, "T": st.booleans()}
    row = {}
    for name, kind in kinds.items():
        choice = draw(st.integers(0, 11))
        if choice == 0:
            continue
        spelt = name.lower() if choice == 1 else name
        row[spelt] = None if choice == 2 else draw(ODD if choice == 3 else kind)
    if draw(st.booleans()):
        row["A"] = draw(st.integers(-5, 5))
    return json.dumps(row, ensure_ascii=draw(st.booleans())).encode()


KEYS = st.sampled_from([b"a", b"b", b"Ab", "ß".encode(), b"", None, b"\xff"])
TIMES = st.integers(-1, 40_000)
RECORDS = st.lists(st.tuples(KEYS, objects(), TIMES), max_size=25)


def selects(depth: int = 2) -> st.SearchStrategy[str]:
    return st.tuples(truths(depth), texts(depth), wholes(depth), doubles(depth)).map(
        lambda p: (
            f"SELECT K, AS_VALUE({p[1]}) AS X, {p[2]} AS Y, {p[3]} AS Z, {p[0]} AS W, T, B FROM I"
            f" WHERE {p[0]}"
        )
    )


@given(selects(), RECORDS, st.integers(1, 30))
@settings(max_examples=400, deadline=None)
def test_a_random_query_of_json_writes_the_same_both_ways(
    select: str, records: list[Record], rows: int
) -> None:
    same_both_ways(f"{JSON} CREATE STREAM O AS {select};", records, rows)


def test_most_of_what_is_random_is_really_taken_in_columns() -> None:
    select = "SELECT K, UCASE(S) AS X, A + B AS Y, C * 2 AS Z FROM I WHERE B > 0"
    work = stage_work(planned(f"{JSON} CREATE STREAM O AS {select};"))
    value = b'{"A":1,"B":5,"C":2.5,"S":"x","T":true}'
    (source,) = work.topology.sources
    assert source.lane is not None
    found = source.lane.taken(batches_of(table_of([(b"a", value, 1)] * 10), 10)[0])
    assert (len(found.places), len(found.left)) == (10, 0)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_record_that_fails_stands_between_its_neighbours_as_it_does_step_by_step(
    size: int,
) -> None:
    values = [b'{"A":%d}' % number for number in (1, 0, 2)]
    records: list[Record] = [(b"k", value, 5) for value in [*values, b"{", b'{"A":"3"}', *values]]
    made = same_both_ways(f"{JSON} CREATE STREAM O AS SELECT K, 6 / A AS X FROM I;", records, size)
    told = [row["value"] for row in made if row["topic"] == "O"]
    found = [json.loads(value)["X"] for value in told]
    assert found == [6, None, 3, 2, 6, None, 3]
    assert sum(row["topic"] == "log" for row in made) == 3


@pytest.mark.parametrize(
    "select",
    [
        "SELECT * FROM I;",
        "SELECT S AS G, A FROM I WHERE A > 0 PARTITION BY S;",
        "SELECT A + 1 AS G, S FROM I PARTITION BY A + 1;",
        "SELECT K, S, ROWOFFSET + ROWTIME AS P, ROWPARTITION AS Q FROM I;",
    ],
)
@given(RECORDS, st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_keys_and_places_of_records_are_the_same_both_ways(
    select: str, records: list[Record], rows: int
) -> None:
    same_both_ways(f"{JSON} CREATE STREAM O AS {select}", records, rows)


def packed(form: str, *values: Any) -> bytes:
    return struct.pack(form, *values)


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-9, 9).map(lambda n: packed(">q", n)), st.just(b"x")),
            st.sampled_from([None, b"", b"ab", b"\xff", "ß".encode(), b"a" * 50]),
            TIMES,
        ),
        max_size=25,
    ),
    st.sampled_from(
        [
            "SELECT K, UCASE(S) AS S FROM I WHERE S <> 'ab';",
            "SELECT K, LEN(S) AS N FROM I;",
            "SELECT S, K FROM I PARTITION BY S;",
            "SELECT K, CAST(K AS DOUBLE) / 4 AS D FROM I WHERE K > 0;",
        ]
    ),
    st.sampled_from(["KAFKA", "JSON", "DELIMITED"]),
    st.integers(1, 30),
)
@settings(max_examples=200, deadline=None)
def test_bare_values_are_the_same_both_ways(
    records: list[Record], select: str, written: str, rows: int
) -> None:
    made = f"CREATE STREAM O WITH (value_format='{written}') AS {select}"
    same_both_ways(f"{BARE} {made}", records, rows)


LINE = st.lists(st.sampled_from(["1", "", "2.5", "x", " 7", '"a,b"', "true", "é"]), max_size=6)


@given(
    st.lists(st.tuples(KEYS, LINE.map(lambda cells: ",".join(cells).encode()), TIMES), max_size=20)
)
@settings(max_examples=100, deadline=None)
def test_delimited_lines_are_the_same_both_ways(records: list[Record]) -> None:
    lines = [(key, b"1,2,2.5,text,true", at) for key, _, at in records]
    select = "SELECT K, S, A + B AS N, C, T FROM I WHERE T;"
    same_both_ways(f"{LINES} CREATE STREAM O AS {select}", [*records, *lines])


@pytest.mark.parametrize(
    ("select", "value"),
    [
        ("C / 0E0", {"C": 0.0}),
        ("-(C / 0E0)", {"C": 0.0}),
        ("1E0 / 0E0 - 1E0 / 0E0", {}),
        ("ROUND(A, -1)", {"A": 2**31 - 1}),
        ("ROUND(B, -1)", {"B": 2**63 - 1}),
    ],
)
def test_numbers_at_the_edge_of_their_types_have_the_same_bytes_both_ways(
    select: str, value: dict[str, Any]
) -> None:
    made = f"CREATE STREAM O WITH (value_format='KAFKA') AS SELECT K, {select} AS X FROM I;"
    found = same_both_ways(f"{JSON} {made}", [(b"k", json.dumps(value).encode(), 5)])
    assert found[0]["topic"] == "O"


@pytest.mark.parametrize("select", ["S + '\ud800' AS X", "S LIKE '\ud800%' AS X"])
def test_a_text_that_no_column_holds_makes_no_lane(select: str) -> None:
    topology = planned(f"{STREAM} SELECT K, {select} FROM I;")
    assert not has_lane(topology, merges=True)


def test_rows_whose_functions_make_very_long_texts_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiling, "_TEXT_MAX", 1_000)
    records: list[Record] = [(b"k", b'{"S":"x"}', 5)] * 9
    select = "SELECT K, LEN(RPAD(S, 400, 'y')) AS N FROM I;"
    same_both_ways(f"{STREAM} {select}", records)
    (source,) = planned(f"{STREAM} {select}").sources
    assert source.lane is not None
    found = source.lane.taken(batches_of(table_of(records), 10)[0])
    assert found.left.tolist() == [3, 4, 5, 6, 7, 8]


def test_headers_stay_with_their_records() -> None:
    work = stage_work(planned(f"{JSON} CREATE STREAM O AS SELECT * FROM I WHERE A > 1;"))
    values = [b'{"A":1}', b'{"A":2}', b'{"A":3}']
    headers = [[{"key": "h", "value": b"1"}], [{"key": "h", "value": None}], None]
    batches = batches_of(table_of([(b"k", one, 1) for one in values], headers=headers), 10)
    made = written_in_lane(work, batches)
    assert made == written_by_steps(without_lane(work), batches)
    assert made[0]["headers"] == headers[1]


# Groups

AGGREGATES = (
    "COUNT(*) AS N, COUNT(S) AS M, SUM(A) AS P, SUM(B) AS Q, SUM(C) AS R, AVG(A) AS U, AVG(C) AS V,"
    " MIN(B) AS W, MAX(A) AS X, MIN(S) AS Y, MAX(C) AS Z, LATEST_BY_OFFSET(S) AS L,"
    " EARLIEST_BY_OFFSET(B) AS E, COLLECT_LIST(S) AS O"
)
GROUPS = [
    f"SELECT K, {AGGREGATES} FROM I GROUP BY K;",
    f"SELECT K, {AGGREGATES} FROM I WHERE A > 0 GROUP BY K;",
    "SELECT K, COUNT(*) AS N, 6 / MIN(A) AS X FROM I GROUP BY K;",
    f"SELECT K, {AGGREGATES} FROM I WINDOW TUMBLING (SIZE 3 SECONDS) GROUP BY K;",
    "SELECT K, COUNT(*) AS N FROM I WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECOND)"
    " GROUP BY K;",
    "SELECT K, SUM(B) AS N, WINDOWSTART AS W FROM I"
    " WINDOW HOPPING (SIZE 4 SECONDS, ADVANCE BY 1 SECOND, GRACE PERIOD 2 SECONDS) GROUP BY K;",
    "SELECT K, COUNT(*) AS N FROM I WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECOND)"
    " GROUP BY K EMIT FINAL;",
    "SELECT K, AVG(C) AS N FROM I"
    " WINDOW HOPPING (SIZE 4 SECONDS, ADVANCE BY 1 SECOND, GRACE PERIOD 2 SECONDS)"
    " GROUP BY K HAVING COUNT(*) > 1 EMIT FINAL;",
]
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "A": st.integers(-3, 3) | WHOLE,
        "B": NUMBERS,
        "C": DOUBLES,
        "S": st.sampled_from(["", "a", "b", "ß"]),
        "T": st.booleans(),
    },
).map(lambda row: {name: None if _is_wide(name, one) else one for name, one in row.items()})


def _is_wide(name: str, value: Any) -> bool:
    return name == "A" and abs(value) > 2**31 - 1


PLAIN = st.tuples(
    st.sampled_from([b"a", b"b", b"c", None]),
    ROWS.map(lambda row: json.dumps(row).encode()),
    st.integers(0, 12_000),
)


def told(rows: list[RowOut]) -> dict[str, list[RowOut]]:
    """All but what suppressed rows were before, of which nothing comes out."""
    return {t: r for t, r in by_topic(rows).items() if "SUPPRESS" not in t}


@pytest.mark.parametrize("select", GROUPS)
@given(
    st.lists(PLAIN, min_size=1, max_size=40),
    st.lists(st.integers(0, 40), max_size=4),
    st.lists(st.booleans(), min_size=5, max_size=5),
)
@settings(max_examples=50, deadline=None)
def test_groups_are_the_same_both_ways_and_by_turns_however_records_are_cut_into_batches(
    select: str, records: list[Record], places: list[int], turns: list[bool]
) -> None:
    work = stage_work(planned(f"{JSON} CREATE TABLE O AS {select}"))
    assert has_lane(work.topology, merges=True)
    lane, steps, mixed = (StatefulTask(work) for _ in range(3))
    for batch, in_lane in zip(cuts(table_of(records), places), turns, strict=False):
        assert lane.takes_lane(batch)
        wanted = told(steps.by_steps(batch))
        assert told(lane.in_lane(batch)) == wanted
        assert told(mixed.in_lane(batch) if in_lane else mixed.by_steps(batch)) == wanted
        if "WINDOW" not in select:  # Else a late record tidies its key's windows up.
            assert lane.states == steps.states


@given(
    st.lists(st.tuples(KEYS, objects(), TIMES), min_size=1, max_size=25),
    st.lists(st.integers(0, 25), max_size=3),
)
@settings(max_examples=100, deadline=None)
def test_a_batch_with_anything_unusual_goes_step_by_step_as_a_whole(
    records: list[Record], places: list[int]
) -> None:
    work = stage_work(planned(f"{JSON} CREATE TABLE O AS {GROUPS[0]}"))
    lane, steps = StatefulTask(work), StatefulTask(work)
    for batch in cuts(table_of(records), places):
        assert told(lane.in_lane(batch)) == told(steps.by_steps(batch))
        assert lane.states == steps.states


def test_windows_at_the_end_of_all_times_are_the_same_both_ways() -> None:
    select = "SELECT K, COUNT(*) AS N FROM I WINDOW TUMBLING (SIZE 2 SECONDS) GROUP BY K;"
    work = stage_work(planned(f"{TABLE} {select}"))
    lane, steps = StatefulTask(work), StatefulTask(work)
    batch = table_of([(b"a", b"{}", at) for at in (5, 2**63 - 1)])
    assert told(lane.in_lane(batch)) == told(steps.by_steps(batch))


def test_a_range_of_large_records_travels_in_parcels_of_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lane_rows, "_PARCEL_BYTES", 5_000)
    work = stage_work(planned(f"{TABLE} SELECT K, COUNT(*) AS N FROM I GROUP BY K;"))
    values = [b"{", *(b'{"S":"%s"}' % (b"x" * 1_000) for _ in range(20))]
    batch = table_of([(b"a", value, 1) for value in values])
    tasks = pa.array([0] * len(batch), pa.int32())
    parcels = list(lane_rows.lane_parcels(work, batch.append_column("task", tasks).to_batches()))
    assert len(parcels) >= 5
    assert StatefulTask(work).in_lane(batch) == StatefulTask(work).by_steps(batch)
