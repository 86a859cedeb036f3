"""Settings have Kafka Streams' names; what cannot be honoured is refused by name."""

import pytest

from penstock.errors import ConfigError
from penstock.streams.running.settings import streams_settings

LEAST = {"application.id": "app", "bootstrap.servers": "h:1"}


def test_exactly_once_is_the_default_and_the_rest_goes_to_the_clients() -> None:
    found = streams_settings({**LEAST, "security.protocol": "PLAINTEXT", "state.dir": "/s"})
    assert found.exactly_once and found.reset == "earliest" and found.dead_letters is None
    assert found.client == {"bootstrap.servers": "h:1", "security.protocol": "PLAINTEXT"}
    assert str(found.folder) == "/s/app"
    assert not streams_settings({**LEAST, "processing.guarantee": "at_least_once"}).exactly_once


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"application.id": ""}, 'Missing required configuration "application.id"'),
        ({"bootstrap.servers": None}, 'Missing required configuration "bootstrap.servers"'),
        ({"application.id": "a/b"}, "must be of letters, digits"),
        ({"processing.guarantee": "once"}, "must be exactly_once_v2 or at_least_once"),
        ({"commit.interval.ms": "soon"}, "must be a number"),
        ({"commit.interval.ms": -1}, "must be at least 0"),
        ({"num.stream.threads": 4}, "num.stream.threads is not supported: Spark decides"),
        ({"group.id": "g"}, "application.id is the group"),
    ],
)
def test_what_cannot_be_honoured_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        streams_settings({**LEAST, **given})
