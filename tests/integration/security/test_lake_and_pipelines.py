"""Tables and pipelines of a secured cluster: secrets come by name, and are written down nowhere.

The lake's driver and tasks read the password from a file, the pipeline's from its environment.
"""

import os
import signal
import subprocess
import traceback
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery
from tests.integration.lake.topics import create, send
from tests.integration.security.secured_broker import PASSWORD, SecuredBroker
from tests.support.pipelines import command, records_of, run_arguments, values_of
from tests.support.processes import ROOT
from tests.unit.lake.reading import rows_of

from penstock import lake
from penstock.cli.tools.pipelines import lake as tool
from penstock.lake.spec import TableSpec
from penstock.pipelines import Topic, pipeline
from penstock.pipelines.queries import start_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(900)

PIPELINE = """
from penstock.pipelines import Topic, pipeline

@pipeline(inputs=Topic("paid", value="id LONG, cents LONG"),
          output=Topic("paid.dear", key="id", partitions=1))
def dear(paid):
    return paid.where("cents > 100").select("id", "cents")
"""


QUOTED = PASSWORD.replace('"', '\\"')
SCRAM_LOGIN = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    f'username="alice" password="{QUOTED}";'
)
WRITTEN_OUT = "a password that stands in the file"


def settings_file(secured: SecuredBroker, path: Path, *, password: str) -> Path:
    """What --command-config names; one secret more is written out there, which nobody asks for."""
    settings = secured.settings("SASL_SSL", "SCRAM-SHA-512", sasl_password=password)
    settings["ssl.key.password"] = WRITTEN_OUT
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


@pytest.fixture
def lent(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> Iterator["SparkSession"]:
    """The session of all tests, which the command takes for its own."""
    monkeypatch.setattr("penstock.spark.session", lambda *_, **__: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield spark
    for number, handler in before.items():
        signal.signal(number, handler)


def files_with(secret: str, folder: Path) -> list[Path]:
    """The files that hold it, whole."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in found if secret.encode() in path.read_bytes()]


def test_a_sync_reads_and_writes_topics_with_a_password_from_a_file(
    secured: SecuredBroker, lent: "SparkSession", tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    create(secured.broker, "bought")
    create(secured.broker, "bought.dead", partitions=1)
    send(secured.broker, "bought", [{"id": n} for n in range(100)] + [b"{broken"])
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n")
    file = settings_file(secured, tmp_path / "alice.properties", password=f"file:{secret}")
    table = tmp_path / "table"
    words = ["sync", "bought", "--command-config", str(file), "--to", str(table), "--once"]
    words += ["--bootstrap-server", secured.address("SASL_SSL"), "--value-format", "json"]
    assert tool.main([*words, "--dead-letter-topic", "bought.dead"]) == 0
    found = rows_of(TableSpec(directory=str(table), format="delta", table_name="lake.bought"))
    assert sorted(row["id"] for row in found) == list(range(100))
    assert [value for _, value in records_of(secured.broker.address, "bought.dead")] == [b"{broken"]
    said = capfd.readouterr()
    for secret in (PASSWORD, WRITTEN_OUT):
        assert files_with(secret, table) == []
        assert secret not in said.out + said.err


def test_a_pipeline_reads_and_writes_topics_with_a_password_from_the_environment(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    create(secured.broker, "paid")
    send(secured.broker, "paid", [{"id": n, "cents": n * 50} for n in range(1, 5)])
    config = settings_file(secured, tmp_path / "alice.properties", password="env:ALICES_PASSWORD")
    file, state = tmp_path / "dear.py", tmp_path / "state"
    file.write_text(PIPELINE)
    words = run_arguments([file], secured.address("SASL_SSL"))
    words += ["--once", "--command-config", str(config), "--state", str(state)]
    done = subprocess.run(
        command("pipeline", *words),
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "ALICES_PASSWORD": PASSWORD},
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = values_of(secured.broker.address, "paid.dear")
    assert sorted(found, key=itemgetter("id")) == [  # Of two partitions; each has its own task.
        {"id": 3, "cents": 150},
        {"id": 4, "cents": 200},
    ]
    for secret in (PASSWORD, WRITTEN_OUT):
        assert secret not in done.stdout + done.stderr
        assert files_with(secret, state) == []  # Spark's log is there, too.
    assert files_with("env:ALICES_PASSWORD", state)  # `reset` finds the way back by it.


def test_plans_and_failures_tell_no_password_that_was_written_out(
    secured: SecuredBroker, spark: "SparkSession", tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Who gives the password itself, and no name of it, is not betrayed either."""
    for name in ("told", "told.strictly"):
        create(secured.broker, name, partitions=1)
    send(secured.broker, "told", [{"id": 1}, b"{broken"])
    settings = {
        **{name: str(value) for name, value in secured.settings("SASL_SSL").items()},
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": SCRAM_LOGIN,
    }
    landed = lake.sync(
        "told",
        to=tmp_path / "table",
        bootstrap=settings["bootstrap.servers"],
        once=True,
        client_settings={k: v for k, v in settings.items() if k != "bootstrap.servers"},
        spark=spark,
    )
    landed.awaitTermination()
    landed.explain(extended=True)
    read = spark.read.format("penstock").option("subscribe", "told")
    read.options(**{f"kafka.{k}": v for k, v in settings.items()}).load().explain(extended=True)
    started = start_query(
        spark, strictly, "strictly", settings=settings, checkpoint=tmp_path / "progress", once=True
    )
    assert isinstance(started, StreamingQuery)
    with pytest.raises(StreamingQueryException) as failed:
        started.awaitTermination()
    started.explain(extended=True)
    said = capfd.readouterr()
    failure = traceback.format_exception(failed.value)
    text = "\n".join([said.out, said.err, *failure, str(started.exception())])
    assert text.count("Physical Plan") == 3 and "told-0@1 cannot be decoded" in text, text
    for secret in (PASSWORD, QUOTED, "ScramLoginModule"):
        assert secret not in text
    assert files_with(QUOTED, tmp_path) == []


@pipeline(
    inputs=Topic("told", value="id LONG"), output=Topic("told.strictly", key="id"), name="strictly"
)
def strictly(told: "DataFrame") -> "DataFrame":
    return told.select("id")
