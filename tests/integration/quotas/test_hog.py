"""A client that hogs the broker does not slow the others, once there is a quota for it.

Told is the progress of a modest client against that of the hog in the same period: how many
requests of the one are answered for each of the other. A busy machine makes the period longer and
changes little in the share; the quota changes it by orders of magnitude. What the hog gets at all
is bounded by the quota alone.
"""

import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.integration.quotas.conftest import SAMPLES, Configs
from tests.integration.quotas.hog import CONNECTIONS, REQUEST_BYTES
from tests.support.batches import batch
from tests.support.broker import BrokerProcess
from tests.support.processes import ROOT, python
from tests.support.waiting import eventually
from tests.support.wire import PRODUCE, RawConnection, produce_body, request

HOGGED, MODEST = "hogged", "modest"
SMALL = batch([bytes(100)])


@contextmanager
def hogging(broker: BrokerProcess, kinds: Sequence[str]) -> Iterator[None]:
    command = [python(), "-m", "tests.integration.quotas.hog", str(broker.port), HOGGED, *kinds]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def make_progress(port: int, count: int) -> float:
    """A modest client asks so many times, one after the other; the seconds it takes."""
    asked = request(PRODUCE, 7, produce_body({(MODEST, 0): SMALL}), client_id="modest")
    began_s = time.monotonic()
    with RawConnection(port, timeout_s=120) as connection:
        for _ in range(count):
            connection.send(asked)
            connection.read_frame()
    return time.monotonic() - began_s


def bytes_used(metrics_port: int) -> tuple[float, float]:
    """Bytes the hog produced and fetched so far."""
    told = metrics(metrics_port)
    family = "kafka_server_brokertopicmetrics_bytes"
    labels = f'{{topic="{HOGGED}"}}'
    return told[f"{family}in_total{labels}"], told[f"{family}out_total{labels}"]


def requests_counted(metrics_port: int, api: str) -> float:
    name = f'kafka_network_requestmetrics_requests_total{{request="{api}"}}'
    return metrics(metrics_port).get(name, 0.0)


def metrics(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def stock(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as connection:
        for topic in (HOGGED, MODEST):
            assert connection.create_topic(topic) == 0
        for _ in range(10):
            connection.produce_one(HOGGED, batch([bytes(REQUEST_BYTES)]))


def wait_for(hog: Callable[[], float]) -> None:
    """Until the hog is at work."""
    before = hog()
    eventually(lambda: hog() > before + 20, timeout_s=120, what="the hog")


def test_a_hog_of_bytes_gets_its_quota_and_the_others_the_broker(
    quota_broker: BrokerProcess, configs: Configs, metrics_port: int
) -> None:
    stock(quota_broker)
    limit = 200_000

    def hog() -> float:
        return sum(bytes_used(metrics_port)) / REQUEST_BYTES

    with hogging(quota_broker, ["produce", "fetch"]):
        wait_for(hog)
        before = hog()
        make_progress(quota_broker.port, 10)
        share_before = 10 / (hog() - before)
        configs(
            *("--alter", "--entity-type", "clients", "--entity-name", "hog"),
            *("--add-config", f"producer_byte_rate={limit},consumer_byte_rate={limit}"),
        )
        began_s = time.monotonic()
        began = bytes_used(metrics_port)
        make_progress(quota_broker.port, 1000)
        ended = bytes_used(metrics_port)
        took_s = time.monotonic() - began_s
    # A burst of the window, and one request of each connection that was not paused yet.
    allowed = limit * (took_s + SAMPLES)
    produced, fetched = ended[0] - began[0], ended[1] - began[1]
    assert produced <= allowed + CONNECTIONS * REQUEST_BYTES
    assert fetched <= allowed + CONNECTIONS * 4 * REQUEST_BYTES
    share = 1000 / max((produced + fetched) / REQUEST_BYTES, 1)
    assert share > 2 * share_before, (
        f"{share} requests for each of the hog's, {share_before} before"
    )


def test_a_hog_of_time_gets_its_share_and_the_others_the_rest(
    quota_broker: BrokerProcess, configs: Configs, metrics_port: int
) -> None:
    stock(quota_broker)

    def hog() -> float:
        return requests_counted(metrics_port, "Metadata")

    def share(count: int) -> float:
        before = hog()
        make_progress(quota_broker.port, count)
        return count / max(hog() - before, 1)

    with hogging(quota_broker, ["metadata"]):
        wait_for(hog)
        share_before = share(20)
        configs(
            *("--alter", "--entity-type", "clients", "--entity-name", "hog"),
            *("--add-config", "request_percentage=1"),
        )
        share_under_quota = share(1000)
    told = f"{share_under_quota} requests for each of the hog's, {share_before} before"
    assert share_under_quota > 2 * share_before, told
