"""`penstock lake` with values in every format, dead letters, and tables put in order.

The command runs in this process, on the session of all tests.
"""

import json
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.topics import create, send
from tests.integration.spark.crashing import consumed
from tests.support.broker import BrokerProcess
from tests.unit.lake.reading import rows_of
from tests.unit.schemas.protos import shop_set

from penstock.cli.tools.pipelines import lake as tool
from penstock.errors import CommandError
from penstock.lake.errors import LakeError
from penstock.lake.spec import TableSpec
from penstock.schemas.avro import AvroWriter, parse
from penstock.schemas.dead_letters import cause_of
from penstock.schemas.protobuf import ProtobufSchema
from penstock.schemas.wire_header import write_header

pytestmark = pytest.mark.timeout(900)

ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {
            "type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "clock", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "who", "type": ["null", "string"], "default": None},
    ],
}  # fmt: skip
WITH_SHOP = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "shop", "type": "string", "default": "main"}],
}
SOLD = {
    "id": 7,
    "price": Decimal("12.50"),
    "at": datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC),
    "day": date(2026, 1, 2),
    "clock": time(0, 0, 1, 500),
    "tags": ["a", "b"],
    "counts": {"x": 1},
    "who": None,
}

Sync = Callable[..., None]


@pytest.fixture
def topic(shared_broker: BrokerProcess, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[-60:].strip("-")
    create(shared_broker, name)
    return name


@pytest.fixture
def sync(
    shared_broker: BrokerProcess,
    spark: SparkSession,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Sync]:
    """`penstock lake sync TOPIC --once`; the session is lent to it."""
    monkeypatch.setattr("penstock.spark.session", lambda *_, **__: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*options: str) -> None:
        words = ["sync", topic, "--bootstrap-server", shared_broker.address]
        assert tool.main([*words, "--to", str(tmp_path / "table"), "--once", *options]) == 0

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


def rows(tmp_path: Path, kind: str, topic: str) -> list[dict[str, Any]]:
    spec = TableSpec(directory=str(tmp_path / "table"), format=kind, table_name=f"lake.{topic}")
    return sorted(rows_of(spec), key=lambda row: row["id"])


@pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])
def test_avro_by_the_id_in_its_header(
    sync: Sync, shared_broker: BrokerProcess, topic: str, tmp_path: Path, kind: str
) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    for number, schema in enumerate((ORDER, WITH_SHOP), 1):
        (schemas / f"{number}.avsc").write_text(json.dumps(schema))
    old = AvroWriter.of(parse(ORDER)).encode(SOLD, write_header(1))
    send(shared_broker, topic, [old])
    options = ("--value-format", "avro", "--schemas", str(schemas), "--format", kind)
    sync(*options, "--schema-id", "1")
    new = {**SOLD, "id": 8, "who": "ann", "shop": "corner"}
    late = {**SOLD, "id": 9}
    values = [
        AvroWriter.of(parse(WITH_SHOP)).encode(new, write_header(2)),
        AvroWriter.of(parse(ORDER)).encode(late, write_header(1)),
    ]
    send(shared_broker, topic, values)
    sync(*options, "--schema-id", "2")
    first, second, third = rows(tmp_path, kind, topic)
    assert {name: first[name] for name in SOLD} == {
        **SOLD,
        "clock": 1_000_500,
        "counts": [("x", 1)],
    }
    assert first["shop"] is None  # Landed before there was such a column.
    assert (second["id"], second["who"], second["shop"]) == (8, "ann", "corner")
    assert (third["id"], third["shop"]) == (9, "main")


def test_csv_with_columns_in_words(
    sync: Sync, shared_broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    send(shared_broker, topic, [b"1,ann,2026-01-02", b'2,"o, dear",'])
    (tmp_path / "words").write_text("id long, name string, day date")
    sync("--value-format", "csv", "--schema", f"@{tmp_path}/words", "--key-format", "string")
    found = [(row["id"], row["name"], row["day"]) for row in rows(tmp_path, "delta", topic)]
    assert found == [(1, "ann", date(2026, 1, 2)), (2, "o, dear", None)]


@pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])
def test_protobuf_by_its_descriptors(
    sync: Sync, shared_broker: BrokerProcess, topic: str, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "shop.desc").write_bytes(shop_set())
    message = ProtobufSchema.of(shop_set(), "shop.Order").message_class
    order = message(id=1, paid=True, ratio=0.5, shop="corner", mark=b"\xff", tags=["x"])
    order.lines.add(sku="b", count=3)
    order.ordered_at.FromDatetime(datetime(2026, 1, 2, 3, 4, 5))
    order.took.FromSeconds(90)
    order.counts["k"] = 1
    send(shared_broker, topic, [order.SerializeToString()])
    described = ("--descriptors", str(tmp_path / "shop.desc"), "--message", "shop.Order")
    sync("--value-format", "protobuf", *described, "--format", kind)
    (row,) = rows(tmp_path, kind, topic)
    assert (row["id"], row["paid"], row["shop"], row["mark"]) == (1, True, "corner", b"\xff")
    assert (row["lines"], row["counts"]) == ([{"sku": "b", "count": 3}], [("k", 1)])
    assert row["took"] == 90_000_000  # Microseconds: tables have no durations.
    assert row["ordered_at"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_records_that_cannot_be_decoded_go_to_their_topic_once(
    sync: Sync,
    shared_broker: BrokerProcess,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    send(shared_broker, topic, [{"id": 1}, b"oops", {"id": 2}, b"[7]"])
    options = ("--value-format", "json", "--dead-letter-topic", "dead", "--group", "lander")
    sync(*options, "--max-records-per-batch", "1")
    assert "2 rows, 2 dead letters in" in capsys.readouterr().out
    send(shared_broker, topic, [b"oh", {"id": 3}])
    sync(*options)
    found = rows(tmp_path, "delta", topic)
    assert [row["id"] for row in found] == [1, 2, 3]
    assert "headers" not in found[0]
    letters = consumed(shared_broker.address, "dead")
    assert sorted(message.value() for message in letters) == [b"[7]", b"oh", b"oops"]
    causes = {message.value(): cause_of(message.headers() or []) for message in letters}
    assert all(cause.topic == topic and cause.offset is not None for cause in causes.values())
    assert "not a JSON object" in str(causes[b"[7]"].message)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--value-format", "csv"), "csv needs --schema"),
        (("--value-format", "avro"), "avro needs --schema or --schema-id"),
        (("--value-format", "protobuf"), "protobuf needs --descriptors and --message"),
        (("--value-format", "csv", "--schema", "@/nowhere"), "/nowhere cannot be read"),
        (("--on-error", "null", "--dead-letter-topic", "dead"), "exclude each other"),
    ],
)
def test_what_a_format_needs_is_asked_for(
    sync: Sync, options: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(CommandError, match=sentence):
        sync(*options)


def test_dead_letters_do_not_go_where_they_come_from(sync: Sync, topic: str) -> None:
    with pytest.raises(LakeError, match="choose another"):
        sync("--value-format", "json", "--dead-letter-topic", topic)


@pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])
def test_small_files_are_put_together_on_demand(
    sync: Sync,
    shared_broker: BrokerProcess,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    send(shared_broker, topic, ({"id": number} for number in range(12)))
    options = ("--value-format", "json", "--format", kind, "--no-compaction")
    sync(*options, "--max-records-per-batch", "2")
    capsys.readouterr()
    assert tool.main(["compact", str(tmp_path / "table")]) == 0
    assert "files less" in capsys.readouterr().out
    assert [row["id"] for row in rows(tmp_path, kind, topic)] == list(range(12))
    assert tool.main(["compact", str(tmp_path / "table")]) == 0
    assert "nothing to do" in capsys.readouterr().out
    send(shared_broker, topic, [{"id": 12}])
    sync(*options)
    assert [row["id"] for row in rows(tmp_path, kind, topic)] == list(range(13))


def test_only_our_tables_are_put_in_order(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="not a table that penstock has written"):
        tool.main(["compact", str(tmp_path)])
