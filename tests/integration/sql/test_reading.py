"""What a server answers without Spark: statements, INSERT VALUES, queries that read topics."""

import http.client
import json
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from tests.support.http2 import RawHttp2
from tests.support.processes import HOST
from tests.support.sql_server import SqlServerProcess
from tests.support.waiting import eventually
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect

pytestmark = pytest.mark.timeout(300)

ORDERS = (
    "CREATE STREAM orders (id INT KEY, item VARCHAR, cents BIGINT, tags ARRAY<VARCHAR>) "
    "WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=2);"
)
PEOPLE = (
    "CREATE SOURCE TABLE people (name VARCHAR PRIMARY KEY, age INT) "
    "WITH (KAFKA_TOPIC='people', VALUE_FORMAT='JSON', PARTITIONS=1);"
)


@pytest.fixture(scope="module", autouse=True)
def streams(sql: SqlServerProcess) -> None:
    made = sql.ksql(ORDERS)
    assert made[0]["commandStatus"] == {
        "status": "SUCCESS",
        "message": "Stream created",
        "queryId": None,
    }
    for number in range(1, 6):
        inserted = f"INSERT INTO orders VALUES ({number}, 'thing {number}', {number * 100}, NULL);"
        assert sql.ksql(inserted) == []


def test_a_server_tells_of_itself(sql: SqlServerProcess) -> None:
    status, info = sql.ask("GET", "/info")
    assert status == 200 and info["KsqlServerInfo"]["serverStatus"] == "RUNNING"
    assert info["KsqlServerInfo"]["ksqlServiceId"] == "default_"
    assert sql.ask("GET", "/healthcheck")[1]["isHealthy"] is True
    assert sql.ask("GET", "/status/stream/ORDERS/create")[1]["status"] == "SUCCESS"
    assert sql.ask("GET", "/status/stream/NONE/create")[0] == 404
    assert sql.ask("GET", "/is_valid_property/auto.offset.reset") == (200, True)
    assert sql.ask("GET", "/is_valid_property/nonsense")[0] == 400
    assert sql.ask("GET", "/v1/metadata/id")[1]["scope"]["clusters"]["ksql-cluster"] == "default_"


def test_streams_are_shown_and_described(sql: SqlServerProcess) -> None:
    (shown,) = sql.ksql("SHOW STREAMS;")
    assert shown["@type"] == "streams"
    assert {
        "type": "STREAM",
        "name": "ORDERS",
        "topic": "orders",
        "keyFormat": "KAFKA",
        "valueFormat": "JSON",
        "isWindowed": False,
    } in shown["streams"]
    (described,) = sql.ksql("DESCRIBE orders EXTENDED;")
    found = described["sourceDescription"]
    assert [field["name"] for field in found["fields"]] == ["ID", "ITEM", "CENTS", "TAGS"]
    assert found["fields"][0]["type"] == "KEY" and found["partitions"] == 2
    assert found["fields"][3]["schema"]["memberSchema"]["type"] == "STRING"
    names = {one["name"] for one in sql.ksql("LIST TOPICS;")[0]["topics"]}
    assert "orders" in names and not any(name.startswith("_confluent-") for name in names)
    functions = sql.ksql("SHOW FUNCTIONS;")[0]["functions"]
    assert {"name": "COUNT", "type": "AGGREGATE", "category": "AGGREGATE"} in functions
    (about,) = sql.ksql("DESCRIBE FUNCTION LCASE;")
    assert about["@type"] == "describe_function" and about["functions"][0]["returnType"] == "STRING"


def test_mistakes_are_refused_and_a_script_with_one_does_nothing(sql: SqlServerProcess) -> None:
    wrong = sql.refused("CREATE TYPE a AS INT; SELEC;")
    assert wrong["@type"] == "statement_error" and wrong["error_code"] == 40001
    assert wrong["statementText"] == "SELEC;" and wrong["message"].startswith("line 1:23")
    assert sql.ksql("SHOW TYPES;")[0]["types"] == {}
    assert sql.refused("SELECT * FROM orders EMIT CHANGES;")["error_code"] == 40002
    assert "does not exist" in sql.refused("DROP STREAM nothing;")["message"]
    assert (
        "PARTITIONS"
        in sql.refused(
            "CREATE STREAM x (a INT) WITH (KAFKA_TOPIC='nowhere', VALUE_FORMAT='JSON');"
        )["message"]
    )
    assert sql.ask("POST", "/ksql", b"{")[1]["error_code"] == 40000
    assert sql.ask("POST", "/ksql", {"ksql": 1})[1]["@type"] == "generic_error"
    assert sql.ask("POST", "/query", {"ksql": "SHOW STREAMS;"})[1]["error_code"] == 40002
    assert sql.ask("POST", "/ksql", {"ksql": "SHOW STREAMS;", "commandSequenceNumber": 9999})[
        0
    ] == (503)


def test_variables_and_properties_hold_within_a_request(sql: SqlServerProcess) -> None:
    answers = sql.ksql(
        "DEFINE what = 'TYPES'; SHOW ${what}; SET 'auto.offset.reset'='earliest'; SHOW PROPERTIES;"
    )
    assert [one["@type"] for one in answers] == ["type_list", "properties"]
    assert answers[1]["overwrittenProperties"] == ["auto.offset.reset"]
    (shown,) = sql.ksql("SHOW VARIABLES;", sessionVariables={"a": "1"})
    assert shown["variables"] == [{"name": "a", "value": "1"}]


def test_a_pull_query_on_a_stream_reads_to_its_present_end(sql: SqlServerProcess) -> None:
    rows = sql.rows("SELECT id, UCASE(item) AS item FROM orders WHERE cents > 200;")
    assert sorted(row for row in rows if row[0] <= 5) == [
        [3, "THING 3"],
        [4, "THING 4"],
        [5, "THING 5"],
    ]


def test_a_push_query_sends_what_is_there_and_what_comes(sql: SqlServerProcess) -> None:
    query = "SELECT id, cents / 100 AS euros FROM orders WHERE id > 3 EMIT CHANGES;"
    with sql.pushing(query, auto_offset_reset="earliest") as push:
        assert push.head["columnNames"] == ["ID", "EUROS"]
        assert push.head["columnTypes"] == ["INTEGER", "BIGINT"]
        assert sorted(push.row() or [] for _ in range(2)) == [[4, 4], [5, 5]]
        (shown,) = sql.ksql("SHOW QUERIES;")
        assert push.head["queryId"] in [one["id"] for one in shown["queries"]]
        sql.ksql("INSERT INTO orders (id, cents) VALUES (77, 7700);")
        assert push.row() == [77, 77]
        assert sql.ask("POST", "/close-query", {"queryId": push.head["queryId"]})[0] == 200
        assert push.row() is None
    assert sql.ask("POST", "/close-query", {"queryId": "nobody"})[1]["error_code"] == 40000


def test_the_old_address_writes_one_array_and_its_last_word(sql: SqlServerProcess) -> None:
    status, document = sql.ask(
        "POST",
        "/query",
        {
            "ksql": "SELECT id FROM orders WHERE id < 3 EMIT CHANGES LIMIT 2;",
            "streamsProperties": {"ksql.streams.auto.offset.reset": "earliest"},
        },
    )
    assert status == 200 and document[0]["header"]["schema"] == "`ID` INTEGER KEY"
    assert sorted(one["row"]["columns"] for one in document[1:3]) == [[1], [2]]
    assert document[3] == {"finalMessage": "Limit Reached"}


def test_rows_are_inserted_as_lines(sql: SqlServerProcess) -> None:
    body = b'{"target":"orders"}\n{"id":100,"item":"a","tags":["x"]}\n{"ID":101,"`CENTS`":5}\n'
    status, text = sql.ask("POST", "/inserts-stream", body + b'{"nothing":1}\n{"id":102}\n')
    assert status == 200
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[:2] == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    assert lines[2]["status"] == "error" and len(lines) == 3
    rows = sql.rows("SELECT id, item, cents, tags FROM orders WHERE id >= 100;")
    assert sorted(rows) == [[100, "a", None, ["x"]], [101, None, 5, None]]


def test_rows_are_acknowledged_as_they_come(sql: SqlServerProcess) -> None:
    connection = socket.create_connection((HOST, sql.port), timeout=60)
    head = b"POST /inserts-stream HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    with connection, connection.makefile("rb") as answer:
        connection.sendall(head + chunk(b'{"target":"orders"}\n'))
        for number in range(5):
            connection.sendall(chunk(b'{"id":%d}\n' % (200 + number)))
            line = answer.readline()
            while not line.startswith(b"{"):
                assert line
                line = answer.readline()
            assert json.loads(line) == {"status": "ok", "seq": number}
    assert len(sql.rows("SELECT id FROM orders WHERE id >= 200;")) == 5


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def test_queries_and_inserts_share_a_connection_of_http2(sql: SqlServerProcess) -> None:
    with RawHttp2(sql.port) as client:
        push = client.ask("/query-stream", "POST", ends=False)
        client.send(push, {"sql": "SELECT id FROM orders WHERE id >= 300 EMIT CHANGES LIMIT 3;"})
        client.h2.end_stream(push)
        client.flush()
        assert json.loads(client.line(push))["columnNames"] == ["ID"]
        rows = client.ask("/inserts-stream", "POST", ends=False)
        client.send(rows, {"target": "orders"})
        for number in range(3):
            client.send(rows, {"id": 300 + number})
            assert json.loads(client.line(rows)) == {"status": "ok", "seq": number}
            assert json.loads(client.line(push)) == [300 + number]
        pull = client.ask("/query-stream", "POST", ends=False)
        client.send(pull, {"sql": "SELECT id FROM orders WHERE id = 301;"})
        client.h2.end_stream(pull)
        client.flush()
        assert json.loads(client.line(pull))["columnNames"] == ["ID"]
        assert json.loads(client.line(pull)) == [301]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_asks_over_http2(sql: SqlServerProcess) -> None:
    if "HTTP2" not in subprocess.run(["curl", "-V"], capture_output=True, text=True).stdout:
        pytest.skip("this curl has no HTTP/2")
    body = json.dumps({"sql": "SELECT id FROM orders WHERE id = 1;"})
    command = ["curl", "-sS", "--http2-prior-knowledge", f"{sql.url}/query-stream", "-d", body]
    done = subprocess.run([*command, "-w", "%{http_version}"], capture_output=True, text=True)
    *lines, version = done.stdout.splitlines()
    assert ([json.loads(line) for line in lines][1:], version) == ([[1]], "2"), done.stderr


def test_a_table_is_asked_by_key_and_by_condition(sql: SqlServerProcess) -> None:
    sql.ksql(PEOPLE)
    writable = "CREATE TABLE people_in (name VARCHAR PRIMARY KEY, age INT) " \
        "WITH (KAFKA_TOPIC='people', VALUE_FORMAT='JSON');"  # fmt: skip
    sql.ksql(writable)
    for name, age in (("ann", 30), ("bob", 40), ("cid", 50), ("ann", 31)):
        sql.ksql(f"INSERT INTO people_in VALUES ('{name}', {age});")
    asked = "SELECT * FROM people WHERE name IN ('ann', 'cid', 'dan');"
    eventually(lambda: sorted(sql.rows(asked)) == [["ann", 31], ["cid", 50]], timeout_s=60)
    assert sql.rows("SELECT name FROM people WHERE age > 31 AND age < 45;") == [["bob"]]
    assert len(sql.rows("SELECT * FROM people LIMIT 2;")) == 2
    refused = sql.ask("POST", "/query-stream", {"sql": "SELECT * FROM people_in;"})[1]
    assert refused["error_code"] == 40001 and "isn't queryable" in refused["message"]


def asked_twice(sql: SqlServerProcess, first: str, second: str) -> tuple[str, bool]:
    """The answer to the second of two statements, and whether it came at once, in one piece."""
    for text in (first, second):
        connection = http.client.HTTPConnection(HOST, sql.port, timeout=60)
        connection.request("POST", "/query-stream", json.dumps({"sql": text}))
        answer = connection.getresponse()
        body, is_whole = answer.read().decode(), answer.getheader("content-length") is not None
        connection.close()
    return body, is_whole


def test_the_same_question_of_another_key_is_answered_at_once(sql: SqlServerProcess) -> None:
    """And alike, whatever the key has in it; nothing is kept that does not hold any more."""
    made = (
        "CREATE SOURCE TABLE ages (name VARCHAR PRIMARY KEY, age INT) "
        "WITH (KAFKA_TOPIC='ages', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    sql.ksql(made)
    sql.ksql(made.replace("SOURCE TABLE ages", "TABLE ages_in"))
    ages = {"ann": 30, "O'Neill": 40, "": 50, "'?#": 60}
    for name, age in ages.items():
        sql.ksql(f"INSERT INTO ages_in VALUES ({quoted(name)}, {age});")

    def question(name: str) -> str:
        return f"SELECT name, age + 1 AS next FROM ages WHERE name = {quoted(name)};"

    eventually(lambda: sql.rows(question("'?#")) == [["'?#", 61]], timeout_s=60)
    for name in (*ages, "nobody"):
        looked_at, _ = asked_twice(sql, "SELECT 1 FROM ages;", f"-- Not kept.\n{question(name)}")
        at_once, is_whole = asked_twice(sql, question("x"), question(name))
        assert (at_once, is_whole) == (looked_at, True)
        rows = [json.loads(line) for line in at_once.splitlines()[1:]]
        assert rows == ([[name, ages[name] + 1]] if name in ages else [])

    sql.ksql("INSERT INTO ages_in VALUES ('ann', 33);")
    eventually(lambda: sql.rows(question("ann")) == [["ann", 34]], timeout_s=60)
    sql.ksql("DROP TABLE ages;")
    status, refused = sql.ask("POST", "/query-stream", {"sql": question("ann")})
    assert status == 400 and "AGES" in refused["message"]
    sql.ksql(made.replace("age INT", "age VARCHAR"))
    eventually(lambda: sql.rows("SELECT age FROM ages WHERE name = 'ann';") == [["33"]])


def quoted(text: str) -> str:
    """As a literal."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def test_a_topic_is_printed(sql: SqlServerProcess) -> None:
    status, text = sql.ask("POST", "/query", {"ksql": "PRINT 'people' FROM BEGINNING LIMIT 2;"})
    assert status == 200
    lines = text.splitlines()
    assert lines[:2] == ["Key format: KAFKA_STRING", "Value format: JSON"]
    assert 'key: ann, value: {"AGE":30}, partition: 0' in lines[2] and len(lines) == 4


@pytest.mark.parametrize("format_name", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_schemas_are_registered_and_told(sql: SqlServerProcess, format_name: str) -> None:
    name = f"with_{format_name}"
    sql.ksql(
        f"CREATE STREAM {name} (k VARCHAR KEY, n BIGINT, t ARRAY<VARCHAR>) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='{format_name}', PARTITIONS=1);"
        f"INSERT INTO {name} VALUES ('a', 1, ARRAY['x', 'y']);"
    )
    assert sql.rows(f"SELECT * FROM {name};") == [["a", 1, ["x", "y"]]]
    sql.ksql(
        f"CREATE STREAM {name}_told (k VARCHAR KEY) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='{format_name}');"
    )
    assert sql.rows(f"SELECT t, n FROM {name}_told;") == [[["x", "y"], 1]]
    sql.ksql(f"ASSERT SCHEMA SUBJECT '{name}-value'; ASSERT NOT EXISTS TOPIC nowhere;")


def test_a_query_over_a_websocket_sends_columns_rows_and_a_last_word(
    sql: SqlServerProcess,
) -> None:
    push = "SELECT id FROM orders WHERE id < 3 EMIT CHANGES LIMIT 2;"
    with connect(sql.socket_address(push, auto_offset_reset="earliest")) as socket:
        messages = [json.loads(message) for message in socket]
    assert [(one["name"], one["schema"]["type"]) for one in messages[0]] == [("ID", "INTEGER")]
    assert sorted(one["row"]["columns"] for one in messages[1:]) == [[1], [2]]
    assert (socket.close_code, socket.close_reason) == (1000, "done")
    with connect(sql.socket_address("PRINT 'orders' FROM BEGINNING LIMIT 1;")) as socket:
        assert list(socket)[:1] == ["Key format: KAFKA_INT"]
    for text, reason in (
        ("SELECT * FROM nobody EMIT CHANGES;", "NOBODY does not exist"),
        ("SHOW STREAMS;", "send it to /ksql"),
    ):
        with connect(sql.socket_address(text)) as socket, pytest.raises(ConnectionClosedError):
            socket.recv()
        assert socket.close_code == 1003 and reason in (socket.close_reason or "")


def test_a_query_ends_when_its_websocket_does(sql: SqlServerProcess) -> None:
    with connect(sql.socket_address("SELECT id FROM orders EMIT CHANGES;")) as socket:
        socket.recv()
        assert pushes(sql) == 1
    eventually(lambda: pushes(sql) == 0, timeout_s=60)


def pushes(sql: SqlServerProcess) -> int:
    (shown,) = sql.ksql("SHOW QUERIES;")
    return sum(one["queryType"] == "PUSH" for one in shown["queries"])


def test_pages_of_other_hosts_run_no_sql(sql: SqlServerProcess) -> None:
    there = {"origin": "http://elsewhere"}
    assert sql.ask("POST", "/ksql", {"ksql": "SHOW STREAMS;"}, there)[0] == 403
    with pytest.raises(InvalidStatus):
        connect(sql.socket_address("SELECT * FROM orders;"), additional_headers=there)


def test_readers_of_topics_are_counted_and_queries_explained(sql: SqlServerProcess) -> None:
    (shown,) = sql.ksql("SHOW TOPICS EXTENDED;")
    assert shown["@type"] == "kafka_topics_extended"
    orders = next(one for one in shown["topics"] if one["name"] == "orders")
    assert (orders["consumerCount"], orders["consumerGroupCount"]) == (0, 0)
    (told,) = sql.ksql("EXPLAIN SELECT item, COUNT(*) FROM orders GROUP BY item EMIT CHANGES;")
    assert "Topologies:" in told["queryDescription"]["topology"]


def test_connectors_need_a_worker(sql: SqlServerProcess) -> None:
    for text in ("SHOW CONNECTORS;", "DROP CONNECTOR c;", "DESCRIBE CONNECTOR c;"):
        assert "ksql.connect.url" in sql.refused(text)["message"]


def test_a_service_is_terminated_for_good(sql: SqlServerProcess, tmp_path: Path) -> None:
    bootstrap = sql.settings["bootstrap.servers"].removeprefix("PLAINTEXT://")
    with SqlServerProcess(tmp_path, bootstrap, {"ksql.service.id": "ending_"}) as server:
        server.start()
        server.ksql("CREATE TYPE a AS INT;")
        refused = server.ask("POST", "/ksql/terminate", {"deleteTopicList": ["["]})
        assert (refused[0], refused[1]["error_code"]) == (400, 40000)
        status, told = server.ask("POST", "/ksql/terminate", {})
        assert status == 200 and told[0]["commandId"] == "cluster/TerminateCluster/terminate"
        status, told = server.ask("POST", "/ksql", {"ksql": "SHOW TYPES;"})
        assert (status, told["error_code"]) == (503, 50303)

        def is_gone() -> bool:
            topics = {one["name"] for one in sql.ksql("SHOW ALL TOPICS;")[0]["topics"]}
            return "_confluent-ksql-ending__command_topic" not in topics

        eventually(is_gone, timeout_s=120)
        assert server.stop() == 0
        server.start()
        assert server.ksql("SHOW TYPES;")[0]["types"] == {}
        assert server.stop() == 0
