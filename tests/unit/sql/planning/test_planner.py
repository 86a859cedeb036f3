"""Plans: kept as text for each kind of query, and equal however their records are cut into batches.

`PENSTOCK_GOLDEN=write` writes the texts anew.
"""

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle
from tests.support.sql_functions import sql_functions
from tests.support.streams_host import ListHost

from penstock.sql.language.parse import parse
from penstock.sql.testing.explain import explained
from penstock.sql.testing.scripts import cases_of
from penstock.sql.testing.session import TestSession
from penstock.streams import StreamsTopology, TestDriver

from .rig import planned

PLANS = Path(__file__).resolve().parents[3] / "golden" / "sql" / "plans"
SCRIPTS = sorted(PLANS.glob("*.sql"))
QUERIES = PLANS.parent / "queries"


@pytest.mark.parametrize("script", [pytest.param(path, id=path.stem) for path in SCRIPTS])
def test_a_statement_becomes_the_plan_that_is_kept(script: Path) -> None:
    made = "\n".join(explained(script.read_text(), sql_functions()))
    kept = script.with_suffix(".txt")
    if os.environ.get("PENSTOCK_GOLDEN") == "write":
        kept.write_text(made)
    assert made == kept.read_text()


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_plan_does_not_depend_on_the_process_that_made_it(seed: str) -> None:
    """Sets are walked in another order in each process: no plan may show it."""
    program = (
        "import sys; from pathlib import Path; from penstock.sql.testing.explain import explained\n"
        "from tests.support.sql_functions import sql_functions\n"
        "for path in sys.argv[1:]:\n"
        "    made = '\\n'.join(explained(Path(path).read_text(), sql_functions()))\n"
        "    assert made == Path(path).with_suffix('.txt').read_text(), path\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, *map(str, SCRIPTS)],
        env={**os.environ, "PYTHONHASHSEED": seed}, cwd=PLANS.parents[3], capture_output=True,
        text=True,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr


SOURCES = """
CREATE STREAM S (ID BIGINT KEY, G STRING, A BIGINT, D DECIMAL(8, 2))
  WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM R (ID BIGINT KEY, B BIGINT) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE T (ID BIGINT PRIMARY KEY, N STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE U (ID BIGINT PRIMARY KEY, M STRING) WITH (kafka_topic='u', value_format='JSON');
"""
IN_BATCHES = {
    "filter": "CREATE STREAM O AS SELECT ID, A + 1 AS B FROM S WHERE A > 2;",
    "count": "CREATE TABLE O AS SELECT G, COUNT(*) AS C, SUM(D) AS TOTAL FROM S GROUP BY G;",
    "list": "CREATE TABLE O AS SELECT ID, COLLECT_LIST(D) AS L FROM S GROUP BY ID "
    "HAVING COUNT(*) > 1;",
    "windows": "CREATE TABLE O AS SELECT ID, MAX(A) AS M FROM S "
    "WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY ID;",
    "sessions": "CREATE TABLE O AS SELECT ID, SUM(D) AS X FROM S "
    "WINDOW SESSION (1 SECOND) GROUP BY ID;",
    "final": "CREATE TABLE O AS SELECT ID, SUM(A) AS X FROM S WINDOW TUMBLING (SIZE 1 SECOND, "
    "GRACE PERIOD 1 SECOND) GROUP BY ID EMIT FINAL;",
    "streams": "CREATE STREAM O AS SELECT S.ID, A, D, B FROM S LEFT JOIN R WITHIN 1 SECOND "
    "GRACE PERIOD 1 SECOND ON S.ID = R.ID;",
    "lookup": "CREATE STREAM O AS SELECT S.ID, A, D, N FROM S LEFT JOIN T ON S.ID = T.ID;",
    "tables": "CREATE TABLE O AS SELECT ROWKEY, N, M FROM T FULL JOIN U ON T.ID = U.ID;",
}
TOPICS = {
    "s": lambda n: f'{{"G": "g{n % 3}", "A": {n}, "D": {n}.25}}',
    "r": lambda n: f'{{"B": {n}}}',
    "t": lambda n: f'{{"N": "n{n}"}}',
    "u": lambda n: f'{{"M": "m{n}"}}',
}


def records(topology: StreamsTopology, seed: int) -> list[tuple[str, bytes, bytes | None, int]]:
    chance, made = random.Random(seed), []
    topics = sorted({t for node in topology.sources for t in node.topics} & set(TOPICS))
    for number in range(60):
        topic, key = chance.choice(topics), chance.randrange(4).to_bytes(8, "big")
        value = TOPICS[topic](number).encode()
        gone = topic in "tu" and chance.random() < 0.2
        made.append((topic, key, None if gone else value, number * 150 + chance.randrange(900)))
    return made


@pytest.mark.parametrize("name", IN_BATCHES)
def test_batches_of_a_host_give_what_the_driver_gives(name: str) -> None:
    """The plan is pickled for its workers, its state is pages of bytes between batches."""
    topology = planned(SOURCES + IN_BATCHES[name])
    travelled: StreamsTopology = cloudpickle.loads(cloudpickle.dumps(topology))
    driver, host = TestDriver(topology, as_bytes=True), ListHost(travelled)
    for topic, key, value, at_ms in records(topology, seed=7):
        driver.pipe_input(topic, key, value, at_ms)
        host.put(topic, key, value, at_ms)
        host.run()
    wanted = [(r.key, r.value, r.timestamp_ms) for r in driver.read_all("O")]
    found = [(r.key, r.value, r.timestamp_ms) for part in host.topics["O"] for r in part]
    assert found == wanted
    assert found


def test_headers_are_columns() -> None:
    text = """
    CREATE STREAM S (ID INT KEY, A INT, H BYTES HEADER('h'))
        WITH (kafka_topic='s', value_format='JSON');
    CREATE STREAM ALL_OF (ID INT KEY, A INT, HS ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS)
        WITH (kafka_topic='s', value_format='JSON');
    CREATE STREAM O AS SELECT ID, FROM_BYTES(H, 'utf8') AS H FROM S;
    """
    driver = TestDriver(planned(text), as_bytes=True)
    driver.pipe_input("s", bytes(4), b'{"A": 1}', 5, headers=(("h", b"first"), ("h", b"last")))
    driver.pipe_input("s", bytes(4), b'{"A": 1}', 6)
    assert [r.value for r in driver.read_all("O")] == [b'{"H":"last"}', b'{"H":null}']
    counted = (
        text + "CREATE STREAM P AS SELECT ID, ARRAY_LENGTH(HS) AS N, HS[1]->KEY AS K FROM ALL_OF;"
    )
    driver = TestDriver(planned(counted), as_bytes=True)
    driver.pipe_input("s", bytes(4), b'{"A": 1}', 5, headers=(("h", b"first"), ("i", None)))
    assert [r.value for r in driver.read_all("P")] == [b'{"N":2,"K":"h"}']


def test_what_fails_is_told_to_the_processing_log() -> None:
    session = TestSession(sql_functions())
    text = """
    CREATE STREAM S (ID INT KEY, A INT) WITH (kafka_topic='s', value_format='JSON');
    CREATE STREAM O AS SELECT ID, 1 / A AS B FROM S;
    INSERT INTO S VALUES (1, 0);
    """
    for statement in parse(text):
        session.run(statement)
    session.write("s", bytes(4), b"no json", 7)
    assert len(session.log) == 2
    assert "1 / A" in session.log[0]
    assert "A record of s cannot be read" in session.log[1]


def test_every_query_of_the_suite_can_travel_to_workers() -> None:
    cases = [case for path in sorted(QUERIES.glob("*.sql")) for case in cases_of(path.read_text())]
    travelled = 0
    for case in cases[::8]:
        makes = "CREATE STREAM O" in case.text or "CREATE TABLE O" in case.text
        if makes and case.message is None and not re.search(r"INFERRED|\$\{", case.text):
            cloudpickle.loads(cloudpickle.dumps(planned(case.text)))
            travelled += 1
    assert travelled > 10
