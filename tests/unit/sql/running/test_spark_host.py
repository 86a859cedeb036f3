"""What a host says of its queries, and that their plans can travel to Spark's workers."""

from pathlib import Path

import pytest
from pyspark import cloudpickle
from tests.unit.sql.running.world import World

from penstock.queries.status import FAILED, RUNNING, WAITING, QueryStatus
from penstock.sql.commands.applying import COMMANDS
from penstock.sql.language.parse import parse
from penstock.sql.running.engine import SqlEngine
from penstock.sql.running.scope import RequestScope
from penstock.sql.running.spark_host import health_of
from penstock.sql.running.surroundings import FunctionShelf

SOURCES = (
    "CREATE STREAM s (k INT KEY, v BIGINT, t VARCHAR, l ARRAY<INT>) "
    "WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);"
    "CREATE TABLE p (id INT PRIMARY KEY, n VARCHAR) "
    "WITH (KAFKA_TOPIC='p', VALUE_FORMAT='AVRO', PARTITIONS=1);"
)


def status(state: str, *, rows: int = 0, failure: str | None = None) -> QueryStatus:
    return QueryStatus(
        name="q", output="o", group="g", checkpoint="c", state=state, rows=rows, failure=failure,
        lag=2,
    )  # fmt: skip


def test_a_query_is_as_well_as_its_worst_stage() -> None:
    assert health_of([status(RUNNING, rows=1), status(RUNNING, rows=2)]).state == "RUNNING"
    assert health_of([status(RUNNING, rows=1), status(RUNNING, rows=2)]).rows == 3
    assert health_of([status(RUNNING), status(WAITING, failure="x")]).state == "REBALANCING"
    failed = health_of([status(RUNNING), status(FAILED, failure="why")])
    assert (failed.state, failed.failures, failed.lag) == ("ERROR", ("why",), 4)


@pytest.mark.parametrize(
    "query",
    [
        "CREATE STREAM o AS SELECT k, UCASE(t) AS t, RANDOM() AS r, UNIX_TIMESTAMP() AS u FROM s;",
        "CREATE STREAM o AS SELECT k, TRANSFORM(l, x => x + 1) AS l FROM s WHERE t LIKE '%a';",
        "CREATE TABLE o AS SELECT k, COUNT(*) AS n, TOPK(v, 2) AS b FROM s GROUP BY k;",
        "CREATE TABLE o AS SELECT k, SUM(v) AS n FROM s WINDOW SESSION (5 SECONDS) GROUP BY k;",
        "CREATE STREAM o AS SELECT s.k AS k, p.n AS n, EXPLODE(l) AS e FROM s JOIN p ON k = id;",
        "CREATE STREAM o AS SELECT k, twice(v) AS v FROM s;",
    ],
)
def test_plans_can_be_pickled(query: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from penstock.sql.functions.user.decorators import udf\n"
        "@udf\ndef twice(v: int) -> int:\n    return 2 * v\n"
    )
    world = World()
    engine = SqlEngine(
        command_log=world.log,
        topics=world.topics,
        host=world.host,
        functions=FunctionShelf(tmp_path).table,
        schemas=world.schemas,
    )
    engine.run_queries()
    for statement in parse(SOURCES + query):
        assert isinstance(statement, COMMANDS)
        engine.execute(statement, RequestScope())
    (hosted,) = world.host.running.values()
    again = cloudpickle.loads(cloudpickle.dumps(hosted.topology))
    assert again.describe() == hosted.topology.describe()
