"""A cluster to talk to over our own wire client, from the settings of a Kafka client.

The one place where `kafka.*` options of a Spark job become connections. Settings that concern
librdkafka or Java's client alone have no meaning here.
"""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from penstock.client.errors import BrokerUnreachableError, KafkaTimeoutError
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.security import Security
from penstock.errors import ConfigError, RetriableError, UnknownTopicOrPartition

_CLIENT_ID = "penstock-spark"
T = TypeVar("T")


def cluster_for(settings: Mapping[str, str]) -> ClusterClient:
    """Connections as these settings say; opened when needed, on the machine that calls this."""
    return ClusterClient(
        settings["bootstrap.servers"],
        client_id=settings.get("client.id", _CLIENT_ID),
        request_timeout_ms=whole_number(settings, "request.timeout.ms", 30_000),
        api_timeout_ms=whole_number(settings, "default.api.timeout.ms", 60_000),
        retry_backoff_ms=whole_number(settings, "retry.backoff.ms", 100),
        security=Security.from_settings(settings),
    )


def whole_number(settings: Mapping[str, str], name: str, default: int) -> int:
    """A setting in ms, bytes or another whole unit."""
    text = settings.get(name)
    if text is None:
        return default
    if not text.strip().isdigit():
        raise ConfigError(f"{name}={text} is not a number")
    return int(text)


def persistently(
    cluster: ClusterClient, attempt: Callable[[], T], *, retries: int = 0, pause_s: float = 0.1
) -> T:
    """Try until it works, while what goes wrong may pass: a broker restarts, a leader moves.

    Gives up after `default.api.timeout.ms`, but not before so many retries.
    """
    deadline_s = time.monotonic() + cluster.api_timeout_s
    while True:
        try:
            return attempt()
        except UnknownTopicOrPartition:
            raise  # Retriable for one who just created it; here it is an answer.
        except (RetriableError, BrokerUnreachableError, KafkaTimeoutError):
            if retries <= 0 and time.monotonic() > deadline_s:
                raise
            retries -= 1
        time.sleep(pause_s)
