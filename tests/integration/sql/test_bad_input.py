"""Input that is too much: thousands of statements, depth, giant literals, idle clients."""

import json
import socket
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from tests.support.broker import BrokerProcess
from tests.support.processes import HOST
from tests.support.sql_server import SqlServerProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(600)

ROWS = 25_000  # More than wait for one client, and more than sockets hold.
BIG = (
    "CREATE STREAM big (k INT KEY, v STRING) "
    "WITH (KAFKA_TOPIC='big', VALUE_FORMAT='KAFKA', PARTITIONS=1);"
)


@pytest.fixture(scope="module")
def sql(
    shared_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqlServerProcess]:
    """A server that takes little and waits a short while."""
    settings = {"request.max.bytes": "1000000", "penstock.sql.push.client.timeout.ms": "1000"}
    folder = tmp_path_factory.mktemp("sql")
    with SqlServerProcess(folder, shared_broker.address, settings) as server:
        server.start()
        yield server
        assert server.stop() == 0, server.log_end
        assert not server.tracebacks(), server.log_end


def test_a_script_of_thousands_of_statements_is_carried_out_and_one_of_more_refused(
    sql: SqlServerProcess,
) -> None:
    assert len(sql.ksql("SHOW TYPES;" * 2_000)) == 2_000
    refused = sql.refused("SHOW TYPES;" * 5_001)
    assert refused["error_code"] == 40000 and "5000 statements" in refused["message"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("INSERT INTO s VALUES (" + "ABS(" * 2_000 + "1" + ")" * 2_000 + ");", "nested more than"),
        ("CREATE TYPE a AS " + "ARRAY<" * 2_000 + "INT" + ">" * 2_000 + ";", "nested more than"),
        ("CREATE TYPE a AS DECIMAL(" + "9" * 5_000 + ", 1);", ""),
        ("INSERT INTO s VALUES (" + "9" * 100_000 + ");", "too large"),
        ("DEFINE a = '" + "x" * 100_000 + "'; SHOW ${a};", ""),
    ],
)
def test_depth_and_giant_literals_are_refused_with_a_reason(
    sql: SqlServerProcess, text: str, reason: str
) -> None:
    refused = sql.refused(text)
    assert refused["error_code"] == 40001 and reason in refused["message"]
    assert sql.ksql("SHOW STREAMS;")[0]["@type"] == "streams", "and the server goes on"


def test_a_body_beyond_the_limit_is_not_read(sql: SqlServerProcess) -> None:
    status, told = sql.ask("POST", "/ksql", {"ksql": "-- " + "x" * 1_100_000})
    assert (status, told["@type"]) == (413, "generic_error")
    line = b'{"target":"nobody"}\n' + b'{"v":"' + b"x" * 1_200_000 + b'"}\n'
    assert sql.ask("POST", "/inserts-stream", line)[0] in (400, 413)


@pytest.mark.long
def test_a_client_that_does_not_read_is_cut_off_and_told(
    sql: SqlServerProcess, shared_broker: BrokerProcess
) -> None:
    sql.ksql(BIG)
    producer = Producer({"bootstrap.servers": shared_broker.address, "linger.ms": 20})
    for number in range(ROWS):
        producer.produce("big", "x" * 1_000, number.to_bytes(4, "big"))
    assert producer.flush(120) == 0
    body = json.dumps(
        {
            "sql": "SELECT k, v, v AS w FROM big EMIT CHANGES;",
            "properties": {"auto.offset.reset": "earliest"},
        }
    )
    with socket.create_connection((HOST, sql.port), timeout=300) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        head = f"POST /query-stream HTTP/1.0\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        slow.sendall(head.encode() + body.encode())

        def is_cut_off() -> bool:
            shown = sql.ksql("SHOW QUERIES;")[0]["queries"]
            return not any(one["queryType"] == "PUSH" for one in shown)

        assert slow.recv(12) == b"HTTP/1.1 200"
        eventually(is_cut_off, timeout_s=300)
        told = b""
        while piece := slow.recv(1 << 20):
            told = (told + piece)[-2_000:]
    assert b"takes its rows too slowly" in told
