"""Statements about connectors against a real worker of Connect."""

import os
from pathlib import Path

import pytest
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.sql_server import SqlServerProcess
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.environ.get("PENSTOCK_LONG") != "1", reason="a worker and Spark: long"),
]

SINK = (
    "CREATE SINK CONNECTOR {name} WITH ('connector.class'='FileStreamSink', 'tasks.max'=1, "
    "'file'='{file}', 'topics'='lines');"
)


def test_connectors_are_made_shown_and_dropped_by_statements(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    with ConnectProcess(tmp_path / "connect", broker.address) as worker:
        worker.start()
        settings = {"ksql.connect.url": worker.url}
        with SqlServerProcess(tmp_path / "sql", broker.address, settings) as sql:
            sql.start()
            plugins = sql.ksql("SHOW CONNECTOR PLUGINS;")[0]["connectorsPlugins"]
            assert any(one["className"].endswith("FileStreamSinkConnector") for one in plugins)
            assert sql.ksql("SHOW CONNECTORS;")[0]["connectors"] == []
            wrong = sql.refused(
                "CREATE SINK CONNECTOR w WITH ('connector.class'='FileStreamSink');"
            )
            assert "Validation error" in wrong["message"] and "topics" in wrong["message"]
            sql.ksql("CREATE STREAM lines (line STRING) WITH (KAFKA_TOPIC='lines', "
                     "VALUE_FORMAT='KAFKA', PARTITIONS=1);")  # fmt: skip
            text = SINK.format(name="out", file=tmp_path / "out.txt")
            (made,) = sql.ksql(text)
            assert made["@type"] == "connector_info" and made["info"]["name"] == "OUT"
            assert made["info"]["config"]["topics"] == "lines"
            assert "already exists" in sql.refused(text)["message"]

            def shown() -> list[tuple[str, str]]:
                found = sql.ksql("SHOW SINK CONNECTORS;")[0]["connectors"]
                return [(one["name"], one["type"]) for one in found]

            eventually(lambda: shown() == [("OUT", "sink")], timeout_s=120)
            (told,) = sql.ksql("DESCRIBE CONNECTOR out;")
            assert told["@type"] == "connector_description" and told["status"]["name"] == "OUT"
            assert sql.ksql("DROP CONNECTOR out;")[0]["connectorName"] == "OUT"
            assert "not found" in sql.refused("DROP CONNECTOR out;")["message"]
            assert sql.ksql("DROP CONNECTOR IF EXISTS out;")[0]["@type"] == "warning_entity"
            assert sql.stop() == 0
