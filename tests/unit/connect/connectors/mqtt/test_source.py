"""The settings of an MQTT source: all errors at once, and several tasks that share."""

from penstock.connect.connectors.mqtt.source import MqttSourceConnector
from penstock.connect.testing import refused_settings

GOOD = {"mqtt.server.uri": "tcp://h:1883", "mqtt.topics": "a/+,b/#", "kafka.topic": "t"}


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert refused_settings(MqttSourceConnector, GOOD) == {}
    wrong = refused_settings(
        MqttSourceConnector,
        {
            "mqtt.server.uri": "http://h",
            "mqtt.topics": "a/#/b",
            "mqtt.qos": "2",
            "mqtt.version": "4",
            "mqtt.clean.session.enabled": "perhaps",
        },
    )
    assert sorted(wrong) == [
        "kafka.topic",
        "mqtt.clean.session.enabled",
        "mqtt.qos",
        "mqtt.server.uri",
        "mqtt.topics",
        "mqtt.version",
    ]


def test_a_trust_store_that_cannot_be_read_is_told() -> None:
    store = {"mqtt.ssl.trust.store.path": "/not/there.pem", "mqtt.server.uri": "ssl://h"}
    assert list(refused_settings(MqttSourceConnector, GOOD | store)) == [
        "mqtt.ssl.trust.store.path"
    ]


def test_several_tasks_need_version_5_and_share_a_subscription_of_the_connectors_name() -> None:
    several = {**GOOD, "tasks.max": "2", "name": "my/sensors"}
    assert list(refused_settings(MqttSourceConnector, several)) == ["mqtt.version"]
    several["mqtt.version"] = "5"
    assert refused_settings(MqttSourceConnector, several) == {}
    connector = MqttSourceConnector()
    connector.start(several)
    tasks = connector.task_configs(2)
    assert [one["penstock.task"] for one in tasks] == ["0", "1"]
    assert {one["penstock.mqtt.shared"] for one in tasks} == {"my_sensors"}
    assert "penstock.mqtt.shared" not in connector.task_configs(1)[0]
