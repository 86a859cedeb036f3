"""Which MQTT topics can be subscribed to, and which published to."""

import pytest

from penstock.connect.connectors.mqtt.client import topic_filter_error, topic_name_error


@pytest.mark.parametrize("topic", ["a", "a/b", "/", "+", "#", "a/+/b/#", "$SYS/x"])
def test_filters_that_a_server_takes(topic: str) -> None:
    assert topic_filter_error(topic) is None


@pytest.mark.parametrize("topic", ["", "a#", "#/a", "a/b+", "a\0", "a" * 70_000])
def test_filters_that_no_server_takes(topic: str) -> None:
    assert topic_filter_error(topic)
    assert topic_name_error(topic)


@pytest.mark.parametrize("topic", ["+", "a/#", "a+b"])
def test_a_message_goes_to_one_topic(topic: str) -> None:
    assert topic_name_error(topic)
    assert topic_name_error("a/b") is None
