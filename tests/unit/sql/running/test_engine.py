"""Commands: judged, given topics, logged, carried out; and replayed to the same end."""

import pytest
from tests.unit.sql.running.world import MemoryLog, World

from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.commands.applying import COMMANDS
from penstock.sql.language.parse import parse
from penstock.sql.running.command_records import CommandRefused, terminate_record
from penstock.sql.running.engine import ClusterTerminated, SqlEngine
from penstock.sql.running.ports import CommandStatus
from penstock.sql.running.scope import RequestScope

SOURCE = (
    "CREATE STREAM s (k INT KEY, v BIGINT) "
    "WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=3);"
)
COUNT = "CREATE TABLE c AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;"
COPY = "CREATE STREAM d AS SELECT * FROM s WHERE v > 1;"


def run(engine: SqlEngine, text: str, **properties: str) -> list[CommandStatus]:
    made = []
    for statement in parse(text):
        assert isinstance(statement, COMMANDS)
        made.append(engine.execute(statement, RequestScope(properties=properties)))
    return made


def test_a_command_is_logged_gets_its_topic_and_runs() -> None:
    world = World()
    engine = world.engine()
    source, count = run(engine, SOURCE + COUNT)
    assert (source.id, source.offset, source.message) == ("stream/S/create", 0, "Stream created")
    assert (count.query, count.offset) == ("CTAS_C_1", 1)
    assert world.topics.known["t"].partitions == 3
    assert world.topics.known["C"].partitions == 3
    assert world.topics.configs["C"] == {"cleanup.policy": "compact"}
    assert list(world.host.running) == ["CTAS_C_1"]
    assert engine.health("CTAS_C_1").state == "RUNNING"


def test_a_service_that_comes_back_has_the_same_catalog_and_queries() -> None:
    world = World()
    run(world.engine(), SOURCE + COUNT + COPY + "INSERT INTO d SELECT * FROM s WHERE v < 0;")
    run(world.engine(), "TERMINATE CTAS_C_1; PAUSE CSAS_D_2; CREATE TYPE a AS INT;")
    before = world.engine()
    after = world.engine()
    assert after.catalog == before.catalog
    assert list(world.host.running) == ["INSERTQUERY_3"]
    assert after.health("CSAS_D_2").state == "PAUSED"
    (made,) = run(after, "CREATE STREAM e AS SELECT * FROM s;")
    assert made.query == "CSAS_E_4"
    run(after, "RESUME CSAS_D_2;")
    assert "CSAS_D_2" in world.host.running


def test_what_is_refused_leaves_no_trace() -> None:
    world = World()
    engine = world.engine()
    run(engine, SOURCE)
    logged, catalog = len(world.log.records), engine.catalog
    without_topic = "CREATE STREAM x (a INT) WITH (KAFKA_TOPIC='no', VALUE_FORMAT='JSON');"
    other_shape = SOURCE.replace("STREAM s", "STREAM y").replace("=3", "=4")
    for text in (SOURCE, "DROP STREAM nothing;", without_topic, other_shape, "PAUSE nobody;"):
        with pytest.raises(StatementRefused):
            run(engine, text)
    world.log.fences = 9
    with pytest.raises(CommandRefused):
        run(engine, COPY)
    assert (len(world.log.records), engine.catalog) == (logged, catalog)
    assert not world.host.running


def test_a_drop_ends_the_query_forgets_its_state_and_deletes_the_topic() -> None:
    world = World()
    engine = world.engine()
    run(engine, SOURCE + COUNT)
    run(engine, "DROP TABLE c DELETE TOPIC;")
    assert not world.host.running and world.host.forgotten == {"CTAS_C_1"}
    assert sorted(world.topics.known) == ["t"]


def test_a_replaced_query_keeps_its_id_and_its_state() -> None:
    world = World()
    engine = world.engine()
    run(engine, SOURCE + COPY)
    before = world.host.running["CSAS_D_1"]
    run(engine, "CREATE OR REPLACE STREAM d AS SELECT * FROM s WHERE v > 5;")
    assert world.host.running["CSAS_D_1"] is not before
    assert not world.host.forgotten


def test_a_query_with_state_is_replaced_where_its_state_fits() -> None:
    world = World()
    engine = world.engine()
    run(engine, SOURCE + COUNT)
    run(engine, "CREATE OR REPLACE TABLE c AS SELECT k, COUNT(*) AS n, 1 AS one FROM s GROUP BY k;")
    assert [c.name for c in engine.catalog.relations["C"].columns.all] == ["K", "N", "ONE"]
    table = "CREATE TABLE p (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='p', "
    run(engine, table + "VALUE_FORMAT='JSON', PARTITIONS=3);")
    run(engine, "CREATE TABLE f AS SELECT * FROM p;")
    logged, before = len(world.log.records), engine.catalog
    for text in (
        "c AS SELECT k, COUNT(*) AS n, 1 AS one, SUM(v) AS t FROM s GROUP BY k;",
        "c AS SELECT k, COUNT(*) AS n, 1 AS one FROM s WHERE v > 1 GROUP BY k;",
        "f AS SELECT * FROM p WHERE v > 1;",
    ):
        with pytest.raises(StatementRefused, match="Upgrades not yet supported"):
            run(engine, f"CREATE OR REPLACE TABLE {text}")
    assert len(world.log.records) == logged and engine.catalog == before


def test_two_servers_know_the_same_and_one_runs_the_queries() -> None:
    world = World()
    first = world.engine()
    second, host = world.second()
    run(first, SOURCE)
    run(second, COUNT)
    assert host.settled == ["CTAS_C_1"] and not host.running
    assert second.health("CTAS_C_1").state == "UNRESPONSIVE"
    first.follow()
    assert list(world.host.running) == ["CTAS_C_1"] and world.host.settled == []
    run(first, COPY)
    second.follow()
    assert second.catalog == first.catalog and not host.running
    run(second, "DROP STREAM d DELETE TOPIC;")
    assert "D" in world.topics.known, "the query still writes to it"
    first.follow()
    assert list(world.host.running) == ["CTAS_C_1"] and "D" not in world.topics.known


def test_queries_move_to_the_server_that_is_told_to_run_them() -> None:
    world = World()
    first = world.engine()
    second, host = world.second()
    run(first, SOURCE + COUNT)
    second.run_queries()
    assert list(host.running) == ["CTAS_C_1"]
    assert host.dropped == set(), "nothing of it was known before the log was read"
    first.leave_queries()
    assert not world.host.running and not world.host.forgotten
    first.run_queries()
    assert world.host.dropped == {"CTAS_C_1"}, "its state is older than the other's"
    assert list(world.host.running) == ["CTAS_C_1"]


def test_a_command_is_judged_anew_when_another_server_was_faster() -> None:
    world = World()
    engine = world.engine()
    world.log.fences = 2
    assert run(engine, SOURCE)[0].offset == 0


def test_a_service_ends_with_its_queries_and_the_topics_that_are_named() -> None:
    world = World()
    engine = world.engine()
    run(engine, SOURCE + COUNT + COPY)
    status = engine.terminate(["C", "t"])
    assert status.offset == 3 and engine.is_terminated
    assert world.host.forgotten == {"CTAS_C_1", "CSAS_D_2"}
    assert sorted(world.topics.known) == ["D", "t"], "a source is nobody's to delete"
    assert engine.catalog.relations == {} and world.log.records == []
    with pytest.raises(ClusterTerminated):
        run(engine, SOURCE)
    assert world.engine().catalog.relations == {}, "the next one begins anew"


def test_a_server_that_reads_of_the_end_of_its_service_ends_too() -> None:
    world = World()
    engine = world.engine()
    run(engine, SOURCE + COUNT)
    world.log.records.append(terminate_record(["C"]).encoded())
    with pytest.raises(ClusterTerminated):
        run(engine, COPY)
    assert world.host.forgotten == {"CTAS_C_1"} and sorted(world.topics.known) == ["t"]


def test_the_end_is_carried_out_by_who_runs_the_queries() -> None:
    world = World()
    first = world.engine()
    second, host = world.second()
    run(first, SOURCE + COUNT)
    second.terminate(["C"])
    assert "C" in world.topics.known and second.is_terminated and not host.forgotten
    first.follow()
    assert first.is_terminated and world.host.forgotten == {"CTAS_C_1"}
    assert "C" not in world.topics.known and world.log.records == []


def test_statements_with_nothing_to_do_are_not_logged() -> None:
    world = World()
    engine = world.engine()
    run(engine, SOURCE)
    again = SOURCE.replace("STREAM s", "STREAM IF NOT EXISTS s")
    made = run(engine, again + "DROP STREAM IF EXISTS nothing;")
    assert [one.offset for one in made] == [None, None]
    assert len(world.log.records) == 1


def test_settings_of_a_request_hold_for_its_queries_alone() -> None:
    world = World()
    engine = world.engine()
    run(engine, SOURCE)
    run(engine, COPY, **{"ksql.output.topic.name.prefix": "p-"})
    assert engine.catalog.relations["D"].topic == "p-D"
    assert engine.catalog.properties == {}
    again = world.engine()
    assert again.catalog.relations["D"].topic == "p-D"
    assert world.host.running["CSAS_D_1"].properties == {"ksql.output.topic.name.prefix": "p-"}


def test_columns_that_a_registry_told_are_logged_with_the_statement() -> None:
    world = World()
    engine = world.engine()
    run(engine, SOURCE + "CREATE STREAM a WITH (VALUE_FORMAT='AVRO') AS SELECT * FROM s;")
    told = "CREATE STREAM b (k INT KEY) WITH (KAFKA_TOPIC='A', VALUE_FORMAT='AVRO');"
    run(engine, told)
    columns = engine.catalog.relations["B"].columns
    assert [column.name for column in columns.all] == ["K", "V"]
    world.schemas._subjects.clear()
    assert world.engine().catalog.relations["B"].columns == columns


def test_a_command_that_cannot_be_replayed_is_told_and_passed_over() -> None:
    world = World(log=MemoryLog(records=[(b"stream/X/create", b'{"version":1,"statement":"no"}')]))
    engine = world.engine()
    assert engine.statuses["stream/X/create"].is_error
    assert run(engine, SOURCE)[0].offset == 1


def test_topics_that_do_not_fit_together_are_refused_before_anything_is_logged() -> None:
    world = World()
    engine = world.engine()
    for topic, partitions in (("t", 3), ("p", 2)):
        world.topics.create(topic, partitions=partitions, replicas=1, configs={})
    table = "CREATE TABLE p (id INT PRIMARY KEY, n VARCHAR) WITH (KAFKA_TOPIC='p', "
    run(engine, SOURCE.replace(", PARTITIONS=3", "") + table + "VALUE_FORMAT='JSON');")
    logged = len(world.log.records)
    with pytest.raises(StatementRefused, match="not co-partitioned"):
        run(engine, "CREATE STREAM j AS SELECT s.k AS k, p.n AS n FROM s JOIN p ON s.k = p.id;")
    assert len(world.log.records) == logged and "J" not in world.topics.known
