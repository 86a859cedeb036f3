"""A running query as its owner sees it, when Spark's process is no longer there."""

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError

from penstock.lake.query import LakeQuery
from penstock.lake.spec import TableSpec
from penstock.lake.writing.locks import WriterLock


class Failing:
    """PySpark's query, of which every call raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def _fail(self) -> Any:
        raise self._error

    isActive = recentProgress = property(_fail)  # noqa: N815  (PySpark's names)
    exception = stop = _fail


@pytest.fixture
def spec(tmp_path: Path) -> TableSpec:
    return TableSpec(directory=str(tmp_path / "table"), format="delta")


@pytest.mark.parametrize("error", [ConnectionRefusedError(), Py4JError("no answer")])
def test_a_query_whose_spark_has_died_is_over_and_frees_its_table(
    spec: TableSpec, error: Exception
) -> None:
    query = LakeQuery(Failing(error), spec, WriterLock(spec))  # type: ignore[arg-type]
    assert not query.isActive
    assert "Spark's process ended unexpectedly" in str(query.exception())
    assert query.batches() == []
    query.stop()
    WriterLock(spec).release()


def test_what_java_raises_is_not_taken_for_its_end(spec: TableSpec) -> None:
    error = Py4JJavaError.__new__(Py4JJavaError)
    query = LakeQuery(Failing(error), spec, WriterLock(spec))  # type: ignore[arg-type]
    with pytest.raises(Py4JJavaError):
        query.stop()
