"""Brokers that cannot be reached: one line in the log, a count, and a line when they answer."""

import json
import logging

import pytest
from tests.support.processes import HOST, free_port
from tests.support.waiting import eventually

from penstock.client.connection_log import ConnectionLog
from penstock.client.consumer.consumer import Consumer
from penstock.client.producer.producer import Producer
from penstock.client.values import TopicPartition

ERROR = logging.ERROR
OTHER = logging.getLogger("penstock.client.other")
REFUSED = (
    "[thrd:localhost:9092/bootstrap]: localhost:9092/bootstrap: Connect to "
    "ipv4#127.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)"
)
REFUSED_V6 = REFUSED.replace("ipv4#127.0.0.1", "ipv6#[::1]").replace("after 0ms", "after 12ms")
AS_COORDINATOR = REFUSED.replace("localhost:9092/bootstrap", "GroupCoordinator", 1).replace(
    "localhost:9092/bootstrap", "GroupCoordinator: 127.0.0.1:9092"
)


def fail(log: ConnectionLog, *texts: str) -> None:
    for text in texts:
        log.log(ERROR, "%s [%s] %s", "FAIL", "consumer-1", text)


def statistics(**states: str) -> str:
    names = {"node": "127.0.0.1:9092", "other": "127.0.0.1:9093"}
    brokers = {name: {"nodename": names[name], "state": state} for name, state in states.items()}
    return json.dumps({"brokers": brokers})


def test_a_refusal_is_logged_once_then_counted(caplog: pytest.LogCaptureFixture) -> None:
    log = ConnectionLog(OTHER)
    fail(log, REFUSED, REFUSED, REFUSED_V6, AS_COORDINATOR, REFUSED)
    (line,) = caplog.messages
    assert line == (
        "[consumer-1] localhost:9092: Connect to ipv4#127.0.0.1:9092 failed: Connection refused; "
        "it is tried again, and further failures are counted, not logged"
    )
    log.close()
    assert caplog.messages[1:] == [
        "127.0.0.1:9092/[::1]:9092/localhost:9092 was not reached in 4 more attempts."
    ]


def test_a_broker_that_answers_again_is_told_with_the_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log, taken = ConnectionLog(OTHER), list[str]()
    take = log.watch(taken.append)
    fail(log, REFUSED, REFUSED, REFUSED)
    take(statistics(node="INIT", other="UP"))
    assert len(caplog.messages) == 1
    take(statistics(node="UP", other="UP"))
    assert caplog.messages[1:] == [
        "127.0.0.1:9092/localhost:9092 answers again after 2 more failures."
    ]
    take(statistics(node="UP"))
    log.close()
    assert len(caplog.messages) == 2
    assert len(taken) == 3
    fail(log, REFUSED)  # The next time is news again.
    assert len(caplog.messages) == 3


def test_another_reason_and_another_broker_are_news(caplog: pytest.LogCaptureFixture) -> None:
    log = ConnectionLog(OTHER)
    unknown = "[thrd:x]: nohost:9092/bootstrap: Failed to resolve 'nohost:9092': Name not known"
    fail(log, REFUSED, REFUSED.replace("Connection refused", "No route to host"))
    fail(log, unknown, unknown)
    assert len(caplog.messages) == 3


def test_all_else_that_librdkafka_says_is_logged_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = ConnectionLog(OTHER)
    gone = "[thrd:h:1/0]: h:1/0: Disconnected: connection closed by peer (after 5ms in state UP)"
    fail(log, gone, gone)
    log.log(logging.WARNING, "%s [%s] %s", "MAXPOLL", "consumer-1", REFUSED)
    assert caplog.messages == [f"FAIL [consumer-1] {gone}"] * 2 + [
        f"MAXPOLL [consumer-1] {REFUSED}"
    ]


def test_a_consumer_of_a_broker_that_is_not_there_logs_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = {"reconnect.backoff.ms": 1, "reconnect.backoff.max.ms": 5}
    with Consumer({**settings, "bootstrap.servers": f"{HOST}:{free_port()}"}) as consumer:
        consumer.assign([TopicPartition("t", 0)])

        def counted() -> bool:
            consumer.poll(0.1)
            return sum(one.count for one in consumer._connections._unreached) > 5

        eventually(counted, timeout_s=60)
    refused = [line for line in caplog.messages if "Connection refused" in line]
    assert len(refused) == 1
    assert [line for line in caplog.messages if "more attempts" in line]


def test_a_producer_says_when_the_broker_is_there(caplog: pytest.LogCaptureFixture) -> None:
    with Producer({"bootstrap.servers": "simulated", "test.mock.num.brokers": 1}) as producer:
        leader = producer.partitions_for("t")[0].leader
        assert leader is not None
        at = f"{leader.host}:{leader.port}"
        refused = f"{at}/0: Connect to ipv4#{at} failed: Connection refused"
        fail(producer._connections, refused, refused)
        eventually(lambda: f"{at} answers again after 1 more failures." in caplog.messages)
