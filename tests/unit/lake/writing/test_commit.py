"""Batches into tables without Spark: each once, whatever is repeated, in all three formats."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.disk import small_disk
from tests.unit.lake.reading import rows_of

from penstock.lake.errors import IncompatibleSchema, LakeError
from penstock.lake.query import tidy
from penstock.lake.spec import Merge, TableSpec, parse_partitioning
from penstock.lake.writing.commit import commit_batch, compact_now, discard_batch
from penstock.lake.writing.files import DataFile, TaskFiles

QUERY = "6ad8f001-0000-4000-8000-000000000001"
ALL_FORMATS = pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])
Spec = Callable[..., TableSpec]


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    def make(kind: str, partition_by: str = "", **more: Any) -> TableSpec:
        return TableSpec(
            directory=str(tmp_path / "table"),
            format=kind,
            partition_by=parse_partitioning(partition_by),
            **more,
        )

    return make


def written(
    spec: TableSpec, rows: Sequence[dict[str, Any]] | pa.RecordBatch, batch_id: int, task: int = 0
) -> tuple[DataFile, ...]:
    files = TaskFiles(spec, query_id=QUERY, batch_id=batch_id, task=task)
    files.write(rows if isinstance(rows, pa.RecordBatch) else pa.RecordBatch.from_pylist(rows))
    return files.close()


def land(spec: TableSpec, rows: Sequence[dict[str, Any]] | pa.RecordBatch, batch_id: int) -> None:
    commit_batch(spec, written(spec, rows, batch_id), query_id=QUERY, batch_id=batch_id)


def numbers(spec: TableSpec) -> list[int]:
    return sorted(row["n"] for row in rows_of(spec))


@ALL_FORMATS
def test_a_batch_that_is_replayed_is_there_once(spec: Spec, kind: str) -> None:
    table = spec(kind)
    for batch_id in (0, 1, 1, 0, 2, 2):
        land(table, [{"n": batch_id * 10 + i} for i in range(10)], batch_id)
    assert numbers(table) == list(range(30))


@ALL_FORMATS
def test_two_queries_may_have_the_same_batch_numbers(spec: Spec, kind: str) -> None:
    table = spec(kind)
    land(table, [{"n": 1}], 0)
    files = written(table, [{"n": 2}], 0)
    commit_batch(table, files, query_id="another-query", batch_id=0)
    assert numbers(table) == [1, 2]


@ALL_FORMATS
def test_files_of_a_failed_batch_are_taken_away(spec: Spec, kind: str) -> None:
    table = spec(kind)
    land(table, [{"n": 1}], 0)
    files = written(table, [{"n": 2}], 1)
    discard_batch(table, files, query_id=QUERY, batch_id=1)
    assert numbers(table) == [1]
    assert not any((Path(table.directory) / file.path).exists() for file in files)


@ALL_FORMATS
def test_a_failure_after_the_commit_takes_nothing_away(spec: Spec, kind: str) -> None:
    table = spec(kind)
    files = written(table, [{"n": 2}], 0)
    commit_batch(table, files, query_id=QUERY, batch_id=0)
    discard_batch(table, files, query_id=QUERY, batch_id=0)
    assert numbers(table) == [2]


@ALL_FORMATS
def test_a_driver_that_comes_too_late_commits_nothing(spec: Spec, kind: str) -> None:
    table = spec(kind)
    land(table, [{"n": 1}], 0)
    late = written(table, [{"n": 2}], 1)
    tidy(table, QUERY)  # As its successor does when it starts.
    with pytest.raises(LakeError, match="another writer"):
        commit_batch(table, late, query_id=QUERY, batch_id=1)
    assert numbers(table) == [1]


@ALL_FORMATS
def test_leftovers_of_a_killed_writer_go_and_data_stays(spec: Spec, kind: str) -> None:
    table = spec(kind, "k")
    land(table, [{"n": 1, "k": "a"}], 0)
    before = data_files(table)
    written(table, [{"n": 2, "k": "b"}], 1)
    assert data_files(table) > before
    tidy(table, QUERY)
    assert data_files(table) == before


def test_what_a_killed_attempt_of_a_merged_batch_left_goes_too(spec: Spec) -> None:
    table = spec("delta", merge=Merge(on=("k",)))
    written(table, [{"n": 1, "k": "a"}], 0)  # An attempt whose worker was killed.
    land(table, [{"n": 1, "k": "a"}], 0)
    assert list(Path(table.directory, "_penstock").rglob("part-*"))
    tidy(table, QUERY)
    assert not list(Path(table.directory, "_penstock").rglob("part-*"))
    assert numbers(table) == [1]


def data_files(spec: TableSpec) -> set[Path]:
    return {path for path in Path(spec.directory).rglob("part-*") if path.is_file()}


@ALL_FORMATS
def test_new_columns_are_added_and_old_rows_have_null(spec: Spec, kind: str) -> None:
    table = spec(kind)
    land(table, [{"n": 1}], 0)
    land(table, [{"n": 2, "name": "two", "at": {"x": 1}}], 1)
    land(table, [{"n": 3, "at": {"x": 3, "y": "why"}}], 2)
    assert sorted(rows_of(table), key=lambda row: row["n"]) == [
        {"n": 1, "name": None, "at": None},
        {"n": 2, "name": "two", "at": {"x": 1, "y": None}},
        {"n": 3, "name": None, "at": {"x": 3, "y": "why"}},
    ]


@ALL_FORMATS
def test_types_widen_and_narrow_data_still_fits(spec: Spec, kind: str) -> None:
    table = spec(kind, "k")
    for batch_id, kind in enumerate([pa.int32(), pa.int64(), pa.int16()]):
        rows = {"n": pa.array([batch_id], kind), "k": pa.array(["a"])}
        land(table, pa.RecordBatch.from_pydict(rows), batch_id)
    assert numbers(table) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_whole_numbers_widen_to_double(spec: Spec, kind: str) -> None:
    table = spec(kind, "k")
    land(table, [{"n": 1, "k": "a"}, {"n": 2, "k": "b"}], 0)
    land(table, [{"n": 0.5, "k": "a"}], 1)
    land(table, [{"n": 3, "k": "b"}], 2)
    assert numbers(table) == [0.5, 1, 2, 3]


def test_iceberg_says_that_it_cannot_widen_whole_numbers_to_double(spec: Spec) -> None:
    table = spec("iceberg")
    land(table, [{"n": 1}], 0)
    with pytest.raises(IncompatibleSchema, match=r"column n is int64 .* double .*Iceberg"):
        land(table, [{"n": 0.5}], 1)
    assert numbers(table) == [1]


@ALL_FORMATS
def test_an_incompatible_change_names_column_and_types_and_writes_nothing(
    spec: Spec, kind: str
) -> None:
    table = spec(kind)
    land(table, [{"n": 1, "at": {"x": 1}}], 0)
    with pytest.raises(IncompatibleSchema, match=r"column at\.x is int64 .* string"):
        land(table, [{"n": 2, "at": {"x": "one"}}], 1)
    assert numbers(table) == [1]
    land(table, [{"n": 2, "at": {"x": 2}}], 1)
    assert numbers(table) == [1, 2]


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_numbers_that_a_double_cannot_hold_are_not_bent(spec: Spec, kind: str) -> None:
    table = spec(kind)
    land(table, [{"n": 2**60 + 1}], 0)
    with pytest.raises(IncompatibleSchema, match="column n"):
        land(table, [{"n": 0.5}], 1)
    assert numbers(table) == [2**60 + 1]


@ALL_FORMATS
def test_tasks_that_know_different_columns_fit_in_one_batch(spec: Spec, kind: str) -> None:
    table = spec(kind)
    one = written(table, pa.RecordBatch.from_pydict({"n": pa.array([1], pa.int32())}), 0, 0)
    two = written(table, pa.RecordBatch.from_pydict({"n": [2], "b": ["x"]}), 0, 1)
    commit_batch(table, [*one, *two], query_id=QUERY, batch_id=0)
    assert Counter((row["n"], row["b"]) for row in rows_of(table)) == {(1, None): 1, (2, "x"): 1}


@ALL_FORMATS
def test_small_files_are_put_together_without_losing_a_row(spec: Spec, kind: str) -> None:
    table = spec(kind, "k", small_files_max=4)
    for batch_id in range(12):
        land(table, [{"n": batch_id, "k": batch_id % 2}], batch_id)
    assert numbers(table) == list(range(12))
    assert len(live_files(table)) < 12
    compact_now(TableSpec(**{**vars_of(table), "small_files_max": 2}))
    assert numbers(table) == list(range(12))


def vars_of(spec: TableSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in spec.__slots__}


def live_files(spec: TableSpec) -> list[str]:
    if spec.format == "delta":
        from deltalake import DeltaTable

        return list(DeltaTable(spec.directory).file_uris())
    if spec.format == "iceberg":
        from penstock.lake.formats.iceberg import IcebergLakeTable

        return [t.file.file_path for t in IcebergLakeTable(spec)._table.scan().plan_files()]
    return [str(path) for path in Path(spec.directory).rglob("*=*/*.parquet")]


@ALL_FORMATS
def test_partition_values_of_all_kinds_are_read_back(spec: Spec, kind: str) -> None:
    table = spec(kind, "k")
    names = ["a/b", "x=1", "ü %20", "", None, "plain"]
    land(table, [{"n": i, "k": name} for i, name in enumerate(names)], 0)
    found = {row["n"]: row["k"] for row in rows_of(table)}
    if kind != "iceberg":
        names[3] = None  # A folder cannot tell an empty string from none.
    assert found == dict(enumerate(names))


@ALL_FORMATS
def test_a_task_that_fails_takes_its_files_away(spec: Spec, kind: str) -> None:
    table = spec(kind)
    files = TaskFiles(table, query_id=QUERY, batch_id=0, task=0)
    files.write(pa.RecordBatch.from_pylist([{"n": 1}]))
    files.discard()
    assert data_files(table) == set()


def test_a_parquet_commit_that_was_killed_before_the_move_is_finished_by_the_next(
    spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.lake.formats.parquet import ParquetLakeTable, parquet_files

    table = spec("parquet", "k")
    land(table, [{"n": 1, "k": "a"}], 0)
    files = written(table, [{"n": 2, "k": "a"}], 1)
    with monkeypatch.context() as patch:
        patch.setattr(ParquetLakeTable, "_carry_out", lambda self: None)
        commit_batch(table, files, query_id=QUERY, batch_id=1)
    assert numbers(table) == [1]  # A reader of the folders does not see it yet,
    assert len(parquet_files(table.directory)) == 2  # one that follows the log does,
    assert all(path.exists() for path in parquet_files(table.directory))
    land(table, [{"n": 2, "k": "a"}], 1)  # and the replay lets it be seen, once.
    assert numbers(table) == [1, 2]


def test_a_parquet_compaction_that_was_killed_is_finished_by_the_next(
    spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.lake.formats.parquet import ParquetLakeTable

    table = spec("parquet", "k", small_files_max=2, compact_small_files=False)
    for batch_id in range(5):
        land(table, [{"n": batch_id, "k": "a"}], batch_id)
    with monkeypatch.context() as patch:
        patch.setattr(ParquetLakeTable, "_exchange", lambda self, exchange: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            compact_now(table)
    assert numbers(table) == [0, 1, 2, 3, 4]
    land(table, [{"n": 5, "k": "a"}], 5)
    assert numbers(table) == [0, 1, 2, 3, 4, 5]
    assert len(live_files(table)) == 2


def test_the_parquet_log_is_shortened_and_still_knows_everything(spec: Spec) -> None:
    table = spec("parquet", compact_small_files=False)
    for batch_id in range(120):
        land(table, [{"n": batch_id}], batch_id)
    land(table, [{"n": 119}], 119)
    assert numbers(table) == list(range(120))
    assert len(list(Path(table.directory, "_penstock", "log").glob("*.json"))) < 60


def test_a_table_taken_away_under_a_checkpoint_starts_empty(spec: Spec) -> None:
    table = spec("delta")
    land(table, [{"n": 1}], 0)
    shutil.rmtree(table.directory)
    land(table, [{"n": 2}], 1)
    assert numbers(table) == [2]


@ALL_FORMATS
def test_a_batch_without_rows_is_remembered_too(spec: Spec, kind: str) -> None:
    table = spec(kind)
    land(table, [{"n": 1}], 0)
    commit_batch(table, [], query_id=QUERY, batch_id=1)
    land(table, [{"n": 2}], 1)
    assert numbers(table) == [1]


def merging(spec: Spec, **more: Any) -> TableSpec:
    return spec("delta", "k", merge=Merge(on=("k", "n"), **more))


def test_merged_rows_replace_those_of_their_key_once(spec: Spec) -> None:
    table = merging(spec)
    land(table, [{"k": "a", "n": 1, "v": 1}, {"k": None, "n": 1, "v": 1}], 0)
    for _ in range(2):
        land(table, [{"k": "a", "n": 1, "v": 2}, {"k": None, "n": 1, "v": 2}], 1)
    land(table, [{"k": "a", "n": 2, "v": 3, "more": True}], 2)
    found = sorted((str(row["k"]), row["n"], row["v"], row["more"]) for row in rows_of(table))
    assert found == [("None", 1, 2, None), ("a", 1, 2, None), ("a", 2, 3, True)]
    assert not list(Path(table.directory).rglob("*.staged"))


def test_the_last_of_several_rows_of_a_key_counts(spec: Spec) -> None:
    rows = [{"k": "a", "n": 1, "v": v} for v in (2, 9, 5)]
    with pytest.raises(LakeError, match=r"3 rows with k=a, n=1.*merge_order_by"):
        land(merging(spec), rows, 0)
    land(merging(spec, order_by="v"), rows, 0)
    assert [row["v"] for row in rows_of(merging(spec))] == [9]


def test_a_row_can_delete_that_of_its_key(spec: Spec) -> None:
    table = merging(spec, delete_when="new.op = 'd'")
    land(table, [{"k": "a", "n": n, "op": "c"} for n in range(3)], 0)
    land(table, [{"k": "a", "n": 1, "op": "d"}, {"k": "a", "n": 7, "op": "d"}], 1)
    assert numbers(table) == [0, 2]


def test_a_key_that_the_rows_do_not_have_is_named(spec: Spec) -> None:
    with pytest.raises(LakeError, match="merge_on names n, but the rows have k, v"):
        land(merging(spec), [{"k": "a", "v": 1}], 0)


def test_a_full_disk_is_told_in_a_sentence(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", size_bytes=1 << 20) as disk:
        table = TableSpec(directory=str(disk / "table"), format="delta", compression="none")
        noise = [{"n": n, "text": os.urandom(4096).hex()} for n in range(200)]
        files = TaskFiles(table, query_id=QUERY, batch_id=0, task=0)
        files.write(pa.RecordBatch.from_pylist(noise))
        with pytest.raises(LakeError, match="is full"):
            files.close()
        files.discard()
        land(table, [{"n": 1, "text": ""}], 0)
        assert numbers(table) == [1]
