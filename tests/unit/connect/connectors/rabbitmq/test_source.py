"""The settings of the RabbitMQ connectors: all errors at once, and queues shared out."""

from penstock.connect.connectors.rabbitmq.sink import RabbitMQSinkConnector
from penstock.connect.connectors.rabbitmq.source import RabbitMQSourceConnector
from penstock.connect.testing import refused_settings


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong = {"rabbitmq.port": "0", "rabbitmq.security.protocol": "x", "rabbitmq.queue": "a,a"}
    assert sorted(refused_settings(RabbitMQSourceConnector, wrong)) == [
        *("kafka.topic", "rabbitmq.port", "rabbitmq.queue", "rabbitmq.security.protocol"),
    ]
    sink = {"rabbitmq.delivery.mode": "x", "rabbitmq.host": ""}
    assert sorted(refused_settings(RabbitMQSinkConnector, sink)) == [
        *("rabbitmq.delivery.mode", "rabbitmq.host"),
    ]
    store = {"rabbitmq.https.ssl.keystore.location": "/no.p12"}
    assert list(refused_settings(RabbitMQSinkConnector, store)) == [
        "rabbitmq.https.ssl.truststore.location"
    ]


def test_queues_are_dealt_out_and_several_tasks_may_read_one() -> None:
    connector = RabbitMQSourceConnector()
    connector.start({"rabbitmq.queue": "a,b,c", "kafka.topic": "t"})
    assert [one["rabbitmq.queue"] for one in connector.task_configs(2)] == ["a,c", "b"]
    assert [one["rabbitmq.queue"] for one in connector.task_configs(5)] == ["a", "b", "c", "a", "b"]
