"""penstock dlq against a real broker: listed, shown, counted, and replayed once."""

import json
import signal
import subprocess

import pytest
from tests.integration.cli.conftest import Tool, command
from tests.support.broker import BrokerProcess
from tests.support.spark_topics import FIRST_MS, Topic
from tests.support.waiting import eventually

from penstock.cli.tools.dlq.read import read_topic
from penstock.client.producer.producer import Producer
from penstock.client.values import ProducerRecord
from penstock.schemas.dead_letters import Cause


def put(topic: Topic, origin: str | None, offset: int, message: str, **more: object) -> None:
    """A dead letter; each one in a transaction-less batch of its own."""
    cause = Cause(
        topic=origin,
        partition=0,
        offset=offset,
        timestamp_ms=FIRST_MS + offset,
        pipeline="revenue",
        error_class="penstock.schemas.errors.DecodeError",
        message=message,
    )
    headers = [("trace", b"t%d" % offset), *cause.headers()]
    topic.put([b"value %d" % offset], key=b"k%d" % offset, headers=headers, **more)


def replayed(broker: BrokerProcess, topic: str) -> list[tuple[object, ...]]:
    stored = read_topic({"bootstrap.servers": broker.address}, topic)
    return [(one.record.key, one.record.value, one.record.timestamp, one.record.headers)
            for one in stored]  # fmt: skip


def expected(*offsets: int) -> list[tuple[object, ...]]:
    return [(b"k%d" % n, b"value %d" % n, FIRST_MS + n, (("trace", b"t%d" % n),)) for n in offsets]


def test_dead_letters_are_listed_counted_and_shown(
    tool: Tool, shared_broker: BrokerProcess
) -> None:
    topic = Topic(shared_broker.port, "shown.dead")
    put(topic, "shown", 17, "id is not a 64-bit integer: x")
    put(topic, "shown", 18, "this is not JSON")
    put(topic, "shown", 19, "this is not JSON")
    listed = tool("dlq", "list", "shown.dead")
    assert listed.lines[0].split() == ["PARTITION", "OFFSET", "TIME", "ORIGIN", "ERROR", "MESSAGE"]
    assert listed.lines[1].split()[4:6] == ["shown-0@17", "DecodeError"]
    assert listed.lines[-1] == "3 dead letters in shown.dead."
    counted = tool("dlq", "list", "shown.dead", "--group-by", "message")
    assert counted.lines[1].split(maxsplit=1) == ["2", "this is not JSON"]
    one = tool("dlq", "show", "shown.dead", "--error", "64-BIT", "--json")
    shown = json.loads(one.out)
    assert (shown["key"], shown["value"], shown["headers"]) == (
        "k17",
        "value 17",
        [["trace", "t17"]],
    )
    assert shown["origin"]["offset"] == 17
    page = tool("dlq", "show", "shown.dead", "--from-offset", 1, "--to-offset", 1)
    assert "  message  this is not JSON" in page.lines
    assert tool("dlq", "show", "shown.dead", "--error", "no such", code=1).out == ""


def test_dead_letters_go_back_once_and_without_what_made_them_some(
    tool: Tool, shared_broker: BrokerProcess
) -> None:
    Topic(shared_broker.port, "back")
    dead = Topic(shared_broker.port, "back.dead")
    for number in range(4):
        put(dead, "back", number, "even" if number % 2 == 0 else "odd")
    dry = tool("dlq", "replay", "back.dead")
    assert dry.lines[-1].startswith("Nothing was replayed")
    assert replayed(shared_broker, "back") == []
    odd = tool("dlq", "replay", "back.dead", "--error", "odd", "--execute")
    assert odd.lines[-1] == "2 dead letters replayed."
    assert replayed(shared_broker, "back") == expected(1, 3)
    tool("dlq", "replay", "back.dead", "--execute")
    assert replayed(shared_broker, "back") == expected(1, 3, 0, 2)
    put(dead, "back", 4, "late")
    for _ in range(2):
        tool("dlq", "replay", "back.dead", "--execute")
    assert replayed(shared_broker, "back") == expected(1, 3, 0, 2, 4)
    tool("dlq", "replay", "back.dead", "--again", "--max", 1, "--execute")
    assert replayed(shared_broker, "back") == expected(1, 3, 0, 2, 4, 0)
    groups = tool("consumer-groups", "--describe", "--group", "penstock-dlq-back.dead")
    assert "back.dead" in groups.out


def test_a_batch_that_could_not_be_read_is_shown_and_never_replayed(
    tool: Tool, shared_broker: BrokerProcess
) -> None:
    Topic(shared_broker.port, "whole")
    dead = Topic(shared_broker.port, "whole.dead")
    put(dead, "whole", 1, "a record")
    cause = Cause(topic="whole", partition=0, offset=2, last_offset=5, message="damaged")
    dead.put([None], headers=cause.headers())
    assert "whole-0@2..5" in tool("dlq", "list", "whole.dead").lines[2]
    shown = json.loads(tool("dlq", "show", "whole.dead", "--error", "damaged", "--json").out)
    assert (shown["origin"]["offset"], shown["origin"]["last_offset"]) == (2, 5)
    for options in ((), ("--to-topic", "whole")):
        said = tool("dlq", "replay", "whole.dead", *options, "--again", "--execute")
        assert "1 tell of whole batches" in said.err
    assert replayed(shared_broker, "whole") == expected(1, 1)  # And no tombstone beside them.


def test_markers_and_aborted_records_are_no_dead_letters(
    tool: Tool, shared_broker: BrokerProcess
) -> None:
    for name in ("marked", "marked.dead"):
        Topic(shared_broker.port, name)
    settings = {"bootstrap.servers": shared_broker.address, "transactional.id": "dead"}
    with Producer[bytes, bytes](settings) as producer:
        producer.init_transactions()
        for number in range(6):
            headers = Cause(topic="marked", partition=0, offset=number).headers()
            value = b"value %d" % number
            producer.begin_transaction()
            producer.send(ProducerRecord(topic="marked.dead", value=value, headers=headers))
            producer.flush()
            if number % 3 == 1:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    assert tool("dlq", "list", "marked.dead").lines[-1] == "4 dead letters in marked.dead."
    tool("dlq", "replay", "marked.dead", "--execute", "--to-offset", 3)
    tool("dlq", "replay", "marked.dead", "--execute")
    values = [record[1] for record in replayed(shared_broker, "marked")]
    assert values == [b"value 0", b"value 2", b"value 3", b"value 5"]
    assert tool("dlq", "replay", "marked.dead", "--dry-run").lines[0].split() == [
        "PARTITION",
        "OFFSET",
        "TO",
    ]


@pytest.mark.parametrize("action", ["list", "replay"])
def test_a_topic_that_is_not_there_is_named(tool: Tool, action: str) -> None:
    assert "There is no topic nowhere." in tool("dlq", action, "nowhere", code=1).err


def test_an_origin_that_is_gone_is_not_made_anew(tool: Tool, shared_broker: BrokerProcess) -> None:
    dead = Topic(shared_broker.port, "lost.dead")
    Topic(shared_broker.port, "elsewhere")
    put(dead, "lost", 0, "bad")
    put(dead, None, 1, "no origin")
    done = tool("dlq", "replay", "lost.dead", "--execute", code=1)
    assert "The topic lost does not exist any more" in done.err
    done = tool("dlq", "replay", "lost.dead", "--dry-run", code=1)
    assert "The topic lost does not exist any more" in done.err
    done = tool("dlq", "replay", "lost.dead", "--execute", "--to-topic", "elsewhere")
    assert replayed(shared_broker, "elsewhere") == expected(0, 1)
    assert done.lines[-1] == "2 dead letters replayed."


@pytest.mark.parametrize("how", ["--execute", "--dry-run"])
def test_a_replay_to_a_topic_that_is_not_there_is_refused_and_loses_nothing(
    tool: Tool, shared_broker: BrokerProcess, how: str
) -> None:
    name = f"origin{how}"
    dead = Topic(shared_broker.port, f"{name}.dead")
    put(dead, name, 0, "bad")
    words = ["replay", f"{name}.dead", "--to-topic", "misspelled"]
    done = tool("dlq", *words, how, code=1)
    assert done.err == (
        "The topic misspelled of --to-topic does not exist, and nothing was replayed: create it "
        "first, with `kafka-topics --create --topic misspelled`.\n"
    )
    assert "misspelled" not in tool("topics", "--list").lines
    tool("topics", "--create", "--topic", f"right{how}")
    done = tool("dlq", "replay", f"{name}.dead", "--execute", "--to-topic", f"right{how}")
    assert replayed(shared_broker, f"right{how}") == expected(0)
    assert done.lines[-1] == "1 dead letters replayed."


def test_a_redrive_that_is_killed_goes_on_where_it_was(
    tool: Tool, shared_broker: BrokerProcess
) -> None:
    Topic(shared_broker.port, "killed")
    dead = Topic(shared_broker.port, "killed.dead")
    for number in range(60):
        put(dead, "killed", number, "bad")
    words = ["--bootstrap-server", shared_broker.address, "redrive", "killed.dead", "--execute"]
    process = subprocess.Popen(
        command("dlq", *words, "--rate", 2), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        eventually(lambda: len(replayed(shared_broker, "killed")) >= 4, timeout_s=120)
        assert process.poll() is None, "it was faster than it was told to be"
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    left = tool("dlq", "redrive", "killed.dead", "--dry-run")
    done = tool("dlq", "redrive", "killed.dead", "--execute")
    # What a transaction under way at the kill had sent was taken back, and is sent again.
    assert replayed(shared_broker, "killed") == expected(*range(60))
    assert done.lines[-1].endswith("dead letters redriven.")
    assert len(left.lines) == len(done.lines) < 60
    assert tool("dlq", "redrive", "killed.dead", "--execute").lines[-1].startswith("0 dead")


def test_an_edited_letter_goes_back_in_its_new_form_alone(
    tool: Tool, shared_broker: BrokerProcess
) -> None:
    Topic(shared_broker.port, "edited")
    dead = Topic(shared_broker.port, "edited.dead")
    for number in range(3):
        put(dead, "edited", number, "bad")
    one = ("edited.dead", "--partition", 0, "--offset", 1)
    dry = tool("dlq", "edit", *one, "--value", "better")
    assert dry.lines[-1].startswith("Nothing was edited")
    assert tool("dlq", "list", "edited.dead").lines[-1] == "3 dead letters in edited.dead."
    more = ("--header", "by=ann", "--drop-header", "trace")
    tool("dlq", "edit", *one, "--value", "better", *more, "--execute")
    shown = json.loads(tool("dlq", "show", "edited.dead", "--from-offset", 3, "--json").out)
    assert (shown["value"], shown["edited"]) == ("better", "edited.dead-0@1")
    assert (shown["origin"]["offset"], shown["message"]) == (1, "bad")
    again = tool("dlq", "edit", *one, "--null-value", "--execute", code=1)
    assert "was redriven or edited before" in again.err
    missing = tool("dlq", "edit", "edited.dead", "--partition", 0, "--offset", 99, "--key", "k",
                   code=1)  # fmt: skip
    assert "no dead letter at offset 99" in missing.err
    tool("dlq", "redrive", "edited.dead", "--execute")
    new = (b"k1", b"better", FIRST_MS + 1, (("by", b"ann"),))
    assert replayed(shared_broker, "edited") == [*expected(0, 2), new]


def test_of_two_redrives_the_later_one_goes_on_and_nothing_is_doubled(
    tool: Tool, shared_broker: BrokerProcess
) -> None:
    Topic(shared_broker.port, "twice")
    dead = Topic(shared_broker.port, "twice.dead")
    for number in range(30):
        put(dead, "twice", number, "bad")
    words = ["--bootstrap-server", shared_broker.address, "redrive", "twice.dead", "--execute"]
    first = subprocess.Popen(
        command("dlq", *words, "--rate", 1),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        eventually(lambda: len(replayed(shared_broker, "twice")) >= 1, timeout_s=120)
        tool("dlq", "redrive", "twice.dead", "--execute")
        _, said = first.communicate(timeout=120)
    finally:
        first.kill()
        first.wait()
    assert first.returncode == 1
    assert "Traceback" not in said, said
    assert "another redrive" in said
    assert replayed(shared_broker, "twice") == expected(*range(30))
