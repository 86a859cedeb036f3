"""RabbitMQ connectors against a real server: nothing lost through crashes and a restart."""

from collections.abc import Iterator

import pika
import pytest
from tests.support.processes import HOST, free_port
from tests.support.rabbitmq import RabbitProcess, rabbitmq
from tests.support.tcp_proxy import TcpProxy

from penstock.connect.connectors.rabbitmq.sink import RabbitMQSinkConnector
from penstock.connect.connectors.rabbitmq.source import RabbitMQSourceConnector
from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.connect.testing import SinkRun, SourceRun

BYTES = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitProcess]:
    with rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as running:
        yield running


class Desk:
    """Somebody else at the server: makes queues, fills and empties them."""

    def __init__(self, server: RabbitProcess) -> None:
        self._connection = pika.BlockingConnection(pika.ConnectionParameters(HOST, server.port))
        self.channel = self._connection.channel()

    def queue(self, name: str) -> None:
        self.channel.queue_declare(name, durable=True)

    def say(self, queue: str, texts: list[str]) -> None:
        self.channel.confirm_delivery()
        properties = pika.BasicProperties(delivery_mode=2, message_id="1", headers={"h": 1})
        for text in texts:
            self.channel.basic_publish("", queue, text.encode(), properties)

    def heard(self, queue: str) -> list[bytes]:
        found = []
        while (got := self.channel.basic_get(queue, auto_ack=True))[0] is not None:
            found.append(got[2])
        return found

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def config(server: RabbitProcess, **more: str) -> dict[str, str]:
    return {"rabbitmq.host": HOST, "rabbitmq.port": str(server.port), **more}


def source(server: RabbitProcess, queue: str, **more: str) -> dict[str, str]:
    return config(server, **{"rabbitmq.queue": queue, "kafka.topic": "t", **more})


def test_crashes_at_any_step_lose_no_message(server: RabbitProcess) -> None:
    texts = [f"m{n}" for n in range(40)]
    with Desk(server) as desk:
        desk.queue("crashes")
        desk.say("crashes", texts[:20])
        given = source(server, "crashes", **{"rabbitmq.prefetch.count": "8"})
        with SourceRun(RabbitMQSourceConnector, given, converters=BYTES) as run:
            while not run.poll():
                pass
            run.crash()
            run.run_until(lambda: len(run.values("t")) >= 8)
            run.crash()
            desk.say("crashes", texts[20:])
            run.run_until(lambda: set(run.values("t")) == set(texts))
            assert set(run.keys("t")) == {"crashes"}
            names = {name for name, _ in run.topics["t"][0].headers}
            assert {"rabbitmq.exchange", "rabbitmq.message.id", "rabbitmq.header.h"} <= names
            run.restart()  # Everything was acknowledged.
            assert not run.poll() and not run.poll()
        assert desk.heard("crashes") == []


def test_records_go_to_the_queue_of_their_routing_key(server: RabbitProcess) -> None:
    given = config(server, **{"rabbitmq.routing.key": "to-${key}"})
    with Desk(server) as desk:
        desk.queue("to-a")
        with SinkRun(RabbitMQSinkConnector, given | {"errors.tolerance": "all"}) as run:
            run.produce("t", b"one", key=b"a", headers=[("h", b"1")])
            run.produce("t", b"two", key=b"nowhere")
            run.produce("t", b"three", key=b"x" * 300)
            run.produce("t", b"four", key=b"a")
            run.deliver()
            run.commit()
            assert run.committed == {("t", 0): 4}
            assert [one.offset for one, _ in run.dead] == [1, 2]
        assert desk.heard("to-a") == [b"one", b"four"]
    with SinkRun(RabbitMQSinkConnector, given) as run:
        run.produce("t", b"two", key=b"nowhere")
        with pytest.raises(DataError, match=r"t-0@0.*no queue"):
            run.deliver()


def test_what_the_server_refuses_is_told(server: RabbitProcess) -> None:
    for given, words in (
        (source(server, "no-such-queue"), "NOT_FOUND"),
        (source(server, "q", **{"rabbitmq.password": "wrong"}), "refuses"),
    ):
        refused = pytest.raises(ConnectError, match=words)
        with SourceRun(RabbitMQSourceConnector, given) as run, refused:
            run.task.poll()
    given = source(server, "q", **{"rabbitmq.port": str(free_port())})
    later = pytest.raises(RetriableConnectError, match="out of reach")
    with SourceRun(RabbitMQSourceConnector, given) as run, later:
        run.task.poll()


def test_a_connection_that_is_lost_is_made_again(server: RabbitProcess) -> None:
    with Desk(server) as desk, TcpProxy(server.port) as way:
        desk.queue("away")
        desk.queue("out")
        desk.say("away", ["before"])
        by_proxy = {"rabbitmq.port": str(way.port)}
        to_out = config(server, **{"rabbitmq.routing.key": "out"}, **by_proxy)
        away = source(server, "away") | by_proxy
        with (
            SourceRun(RabbitMQSourceConnector, away, converters=BYTES) as run,
            SinkRun(RabbitMQSinkConnector, to_out) as sink,
        ):
            sink.produce("t", b"one")
            sink.deliver()
            while not run.poll():
                pass
            way.cut()
            run.commit()  # It cannot be acknowledged any more, so it comes again.
            assert not run.poll()
            way.heal()
            desk.say("away", ["after"])
            run.run_until(lambda: run.values("t")[-1] == "after")
            assert run.values("t") == ["before", "before", "after"]
            sink.produce("t", b"two")
            sink.deliver()
            assert desk.heard("out") == [b"one", b"two"]
