"""No setting passes unheard: it is honoured, goes to the clients, or is refused."""

import pytest

from penstock.errors import ConfigError
from penstock.streams import KafkaStreams, StreamsBuilder
from penstock.streams.running.unheard import REASONS, refuse_unheard

LEAST = {"application.id": "app", "bootstrap.servers": "h:1"}


@pytest.mark.parametrize("name", [*REASONS, "producer.acks", "main.consumer.x", "topic.x"])
def test_a_setting_without_effect_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is not supported: .+[^.]\\.$"):
        refuse_unheard({**LEAST, name: "1"})


def test_settings_of_clients_and_our_own_pass() -> None:
    refuse_unheard({**LEAST, "security.protocol": "SSL", "commit.interval.ms": 5})


def test_an_application_is_not_made_with_one() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with pytest.raises(ConfigError, match=r"default\.timestamp\.extractor is not supported: give"):
        KafkaStreams(builder.build(), {**LEAST, "default.timestamp.extractor": "Mine"})
