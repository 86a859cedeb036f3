"""The broker's own measure of its event loop, read as a monitoring system reads it.

Load tests judge by processor time: another process on the machine can make a turn of the loop
long, but cannot make it work. It can make the same work take more processor time, where two
processors are one core: so the limit is that of a machine at rest, times how slow this one is now.
"""

import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.support.broker import BrokerProcess
from tests.support.processes import HOST, free_port

from penstock.telemetry import families

PROCESSOR_S_MAX = 0.1
_REST_S = 0.015  # What the work of `slowness` takes on a processor of 2.5 GHz that is at rest.


def watched_settings(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Settings of a broker whose loop can be watched."""
    return {"metrics.listeners": f"http://{HOST}:{free_port()}", **(settings or {})}


def scrape(broker: BrokerProcess) -> dict[str, float]:
    """Every sample by its name and labels; what is measured by the scrape begins anew."""
    url = f"{broker.settings['metrics.listeners']}/metrics"
    with urllib.request.urlopen(url, timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def longest_turn_s(broker: BrokerProcess, clock: str = "processor") -> float:
    """The longest turn of the loop since the last scrape."""
    return scrape(broker)[f'{families.LOOP_TURN_MAX}{{clock="{clock}"}}']


@contextmanager
def no_long_turns(
    broker: BrokerProcess, *, what: str = "", processor_s_max: float = PROCESSOR_S_MAX
) -> Iterator[None]:
    """Whatever happens in here may keep the loop busy, but never for long at a time."""
    scrape(broker)
    before = slowness()
    yield
    taken_s = longest_turn_s(broker)
    assert taken_s < processor_s_max * max(before, slowness()), (
        f"{what}: one turn of the loop took {taken_s * 1000:.0f} ms of processor:\n{broker.log_end}"
    )


def slowness() -> float:
    """How many times as long the processors take now for the same work; at least 1."""
    began_s = time.thread_time()
    for _ in range(5):
        made = {str(number): [(number,), (number,)] for number in range(4_000)}
        sorted(made, key=made.__getitem__)
    return max(1.0, (time.thread_time() - began_s) / _REST_S)
