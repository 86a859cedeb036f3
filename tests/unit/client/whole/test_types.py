"""What a type checker makes of programs that use the clients, without an annotation of theirs."""

import re
import subprocess
import sys

import pytest

SERVERS = '{"bootstrap.servers": "localhost:9092", "linger.ms": 5}'
HEAD = f"""\
import json
from penstock import Admin, AsyncConsumer, AsyncProducer, Consumer, Producer, ProducerRecord

CONFIG = {SERVERS}

class Price: ...

class PriceDeserializer:
    def deserialize(self, topic: str, data: bytes | None, /) -> Price | None:
        return None

def to_price(data: bytes) -> Price:
    return Price()

def to_bytes(price: Price) -> bytes:
    return b""

"""

# An expression, and the types of its keys and values.
REVEALED = {
    f"Consumer({SERVERS})": "Consumer[bytes, bytes]",
    "Consumer(CONFIG)": "Consumer[bytes, bytes]",
    'Consumer(bootstrap_servers="localhost:9092", group_id="g")': "Consumer[bytes, bytes]",
    'Consumer(CONFIG, value="string")': "Consumer[bytes, str]",
    'Consumer(CONFIG, key="string", value="long")': "Consumer[str, int]",
    'Consumer(CONFIG, key="integer", value="bytes")': "Consumer[int, bytes]",
    'Consumer(CONFIG, key="string", value="json")': "Consumer[str, Any]",
    'Consumer(CONFIG, key="string", value=to_price)': "Consumer[str, Price]",
    "Consumer(CONFIG, value=PriceDeserializer())": "Consumer[bytes, Price]",
    "Consumer(CONFIG, value_deserializer=PriceDeserializer)": "Consumer[bytes, Price]",
    'Consumer(CONFIG, value="string", key_deserializer=to_price)': "Consumer[Price, str]",
    'Consumer(CONFIG, key="uuid", value=json.loads)': "Consumer[Any, Any]",
    "AsyncConsumer(CONFIG)": "AsyncConsumer[bytes, bytes]",
    "AsyncConsumer(CONFIG, value=to_price)": "AsyncConsumer[bytes, Price]",
    'AsyncConsumer(CONFIG, value="json")': "AsyncConsumer[Any, Any]",
    f"Producer({SERVERS})": "Producer[str | bytes, str | bytes]",
    'Producer(CONFIG, value="long")': "Producer[str | bytes, int]",
    'Producer(CONFIG, key="string", value="json")': "Producer[str, Any]",
    "Producer(CONFIG, value=to_bytes)": "Producer[str | bytes, Price]",
    "AsyncProducer(CONFIG)": "AsyncProducer[str | bytes, str | bytes]",
    "Admin(CONFIG)": "Admin",
    'Consumer(CONFIG, value="string").poll(1)': "ConsumerRecords[bytes, str]",
    'next(iter(Consumer(CONFIG, key="string", value="long"))).key': "str | None",
    'next(iter(Consumer(CONFIG, key="string", value="long"))).value': "int | None",
    'next(iter(Consumer(CONFIG))).headers["trace"]': "bytes | None",
    "next(iter(Consumer(CONFIG))).timestamp": "int",
    'Producer(CONFIG).send("t", "v", key=b"k", headers={"a": "1"}).result().offset': "int",
}

GOOD = """
with Producer(CONFIG) as producer:
    producer.send("t", "text", key=b"bytes", headers={"trace": "1", "raw": b"2", "none": None})
    producer.send("t", b"bytes", headers=[("trace", b"1"), ("trace", None)], timestamp=5)
    producer.send(ProducerRecord(topic="t", value=b"v"))
    with producer.transaction():
        pass

with Consumer(CONFIG) as consumer:
    consumer.subscribe(["t"])
    for record in consumer:
        if record.value is not None:
            print(record.value.decode(), record.headers.get("trace"))

def annotated(consumer: Consumer[str, str], producer: Producer[bytes, bytes]) -> None: ...

annotated(Consumer(CONFIG), Producer(CONFIG))
annotated(Consumer({**CONFIG, "value.deserializer": "string"}), producer)
"""

# Each line is a mistake that shows before the program runs.
BAD = [
    'Producer(CONFIG).send("t", 5)',
    'Producer(CONFIG, value="long").send("t", "text")',
    'Producer(CONFIG).send("t", "v", headers={"a": 5})',
    'next(iter(Consumer(CONFIG, value="long"))).value.decode()',
    "Consumer(CONFIG).poll(1).values()",
]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy says, strictly, line by line, of a user's program in a folder of its own."""
    folder = tmp_path_factory.mktemp("program")
    program = HEAD + "".join(f"reveal_type({text})\n" for text in REVEALED) + GOOD
    (folder / "program.py").write_text(program + "".join(f"{line}\n" for line in BAD))
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "program.py"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.stdout, done.stderr
    return done.stdout.splitlines()


def test_types_follow_from_what_is_given(checked: list[str]) -> None:
    notes = [line.partition("Revealed type is ")[2] for line in checked if "Revealed type" in line]
    plain = [re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", note.strip('"')) for note in notes]
    assert dict(zip(REVEALED, plain, strict=True)) == REVEALED


def test_programs_without_annotations_are_clean_and_mistakes_are_found(checked: list[str]) -> None:
    lines = len(HEAD.splitlines()) + len(REVEALED) + len(GOOD.splitlines())
    wrong = [int(line.split(":")[1]) for line in checked if ": error: " in line]
    assert sorted(set(wrong)) == [lines + 1 + at for at in range(len(BAD))], "\n".join(checked)
