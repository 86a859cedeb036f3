"""What becomes of records that fail: dead letters, a warning, or nothing while nobody can tell."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("authlib")

import confluent_kafka
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from tests.integration.validation.world import BY_ID, DECODED, World, broker_and_registry
from tests.support.broker import BrokerProcess
from tests.support.processes import python
from tests.support.waiting import eventually

from penstock.schemas.dead_letters import cause_of, own_headers

DLQ = {"penstock.validation.action": "dlq"}
REQUEST_TIMED_OUT = 7


@pytest.mark.parametrize("check", [BY_ID, DECODED], ids=["by id", "decoded"])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_bad_records_become_dead_letters_and_the_rest_keeps_its_offsets(
    world: World, check: dict[str, str], codec: str
) -> None:
    topic = world.create(f"dlq-{codec}-{len(check)}-{'decode' in check.values()}", {**check, **DLQ})
    good = world.order(topic, 1)
    sent = world.send(topic, good, b"bad", good, b"worse", compression_type=codec)
    assert sent.offsets == [0, 1, 2, 3]
    kept = world.read(topic, 2)
    assert [(message.offset(), message.value()) for message in kept] == [(0, good), (2, good)]
    assert world.send(topic, good).offsets == [4]
    letters = world.read(f"{topic}.dlq", 2)
    assert [letter.value() for letter in letters] == [b"bad", b"worse"]
    cause = cause_of(letters[0].headers())
    assert (cause.topic, cause.partition, cause.stage) == (topic, 0, "VALUE_CONVERTER")
    assert "zero byte" in (cause.message or "")
    assert own_headers(letters[0].headers()) == [] and letters[0].key() == b"k"


def test_an_idempotent_producer_goes_on_after_dead_letters(world: World) -> None:
    topic = world.create(
        "dlq-idempotent", {**BY_ID, **DLQ, "penstock.validation.dlq.topic": "grave"}
    )
    good = world.order(topic, 1)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": world.bootstrap, "enable.idempotence": True, "linger.ms": 60_000}
    )
    for values in ([good, b"bad"], [b"bad", b"bad"], [good, good]):
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(60) == 0
    assert world.end(topic) == 6
    assert [message.offset() for message in world.read(topic, 3)] == [0, 4, 5]
    assert len(world.read("grave", 3)) == 3
    words = ["dlq", "list", "grave", "--bootstrap-server", world.bootstrap]
    told = subprocess.run(
        [python(), "-m", "penstock.cli.main", *words], capture_output=True, text=True, timeout=120
    )
    assert told.returncode == 0, told.stderr
    assert f"{topic}-0@?" in told.stdout and "zero byte" in told.stdout


def test_a_warning_lets_records_in(world: World, broker: BrokerProcess) -> None:
    topic = world.create("warned", {**BY_ID, "penstock.validation.action": "warn"})
    assert world.send(topic, b"bad", b"bad").offsets == [0, 1]
    assert f"Topic {topic}: " in broker.log


def test_a_topic_that_checks_can_change_its_mind(world: World) -> None:
    topic = world.create("changing", {})
    assert world.send(topic, b"anything").codes == [0]
    wanted = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in BY_ID.items()
    ]
    config = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=wanted)
    for done in world.admin.incremental_alter_configs([config]).values():
        done.result(60)
    eventually(lambda: world.send(topic, b"anything").codes == [87], every_s=0.2)


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A broker and a registry that a test may harm, if it leaves them well."""
    settings = {"penstock.validation.timeout.ms": "5000"}
    with broker_and_registry(tmp_path_factory.mktemp("fragile"), settings) as (_, world):
        yield world


def test_bytes_that_never_end_harm_no_other_client(fragile: World) -> None:
    topic, plain = fragile.create("bombs", DECODED), fragile.create("plain", {})
    schema_id = fragile.register(f"{topic}-value", '{"type": "array", "items": "null"}')
    head = b"\0" + schema_id.to_bytes(4, "big")
    bomb = head + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" + b"\0"  # 2^62 nulls.
    with ThreadPoolExecutor() as threads:
        exploding = threads.submit(fragile.send, topic, bomb, message_timeout_ms=90_000)
        while not exploding.done():
            assert fragile.send(plain, b"anything", linger_ms=0).codes == [0]
        assert exploding.result().codes == [87]
    assert fragile.send(topic, head + b"\x04\0").codes == [0]


def test_while_the_registry_is_away_a_topic_does_as_it_says(fragile: World) -> None:
    world = fragile
    refusing = world.create("refusing", BY_ID)
    trusting = world.create("trusting", {**BY_ID, "penstock.validation.when.away": "accept"})
    decoding = world.create("decoding", DECODED)
    good = {name: world.order(name, 1) for name in (refusing, trusting, decoding)}
    world.registry.kill()
    new = good[refusing][:4] + b"\x63" + good[refusing][5:]
    impatient = {"retries": 0}
    sent = world.send(refusing, good[refusing], **impatient)
    assert sent.codes == [REQUEST_TIMED_OUT], sent.answers
    assert world.send(trusting, good[trusting], new).codes == [0, 0]
    assert world.send(decoding, good[decoding], **impatient).codes == [REQUEST_TIMED_OUT]
    world.registry.start()
    assert world.send(refusing, good[refusing]).codes == [0]  # A retry gets through.
    assert world.send(decoding, good[decoding]).codes == [0]
    world.registry.kill()
    assert world.send(refusing, good[refusing]).codes == [0]  # What is known stays known.
    assert world.send(decoding, good[decoding]).codes == [0]
    world.registry.start()
