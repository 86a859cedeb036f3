"""A whole mirror: a keeper for each flow, heartbeats for each cluster, until told to stop."""

import threading
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack

from penstock.errors import ConfigError, PenstockError
from penstock.mirror.config import Beat, MirrorConfig
from penstock.mirror.policies import HEARTBEATS
from penstock.mirror.running.flow_keeper import LOOK_S, FlowKeeper, TaskKeeper
from penstock.mirror.running.hosts import TaskHost
from penstock.mirror.running.task import BeatsTask, opened
from penstock.mirror.topics import chosen_replicas, make_own_topic
from penstock.queries.restart import pause_s

_INTERNAL_REPLICAS = 3
_END_S = 120.0

Report = Callable[[str], None]


def chosen_targets(config: MirrorConfig, targets: Collection[str]) -> MirrorConfig:
    """The same with the flows into these clusters alone; all, if none is named."""
    unknown = sorted(set(targets) - set(config.clusters))
    if unknown:
        known = ", ".join(config.clusters)
        raise ConfigError(f"--clusters names {', '.join(unknown)}; the file has {known}.")
    if not targets:
        return config
    return MirrorConfig(
        clusters=config.clusters,
        flows=tuple(flow for flow in config.flows if flow.target in targets),
        beats=tuple(beat for beat in config.beats if beat.target in targets),
        unused=config.unused,
    )


def slots_of(config: MirrorConfig) -> int:
    """How many tasks may run at a time."""
    clusters = {beat.target for beat in config.beats}
    return sum(flow.tasks_max + 1 for flow in config.flows) + len(clusters)


def supervise(config: MirrorConfig, host: TaskHost, report: Report, stop: threading.Event) -> None:
    """Mirror until told to stop."""
    keepers = [FlowKeeper(config, flow, host, report) for flow in config.flows]
    works: list[tuple[str, Callable[[threading.Event], None]]] = [
        (flow.name, keeper.run) for flow, keeper in zip(config.flows, keepers, strict=True)
    ]
    for target in sorted({beat.target for beat in config.beats}):
        beats = tuple(beat for beat in config.beats if beat.target == target)
        works.append((f"{target} heartbeats", _beater(config, target, beats, host, report)))
    threads = [
        threading.Thread(target=work, args=(stop,), name=name, daemon=True) for name, work in works
    ]
    for thread in threads:
        thread.start()
    stop.wait()
    end_s = time.monotonic() + _END_S
    for thread in threads:
        thread.join(max(0.0, end_s - time.monotonic()))


def _beater(
    config: MirrorConfig, target: str, beats: tuple[Beat, ...], host: TaskHost, report: Report
) -> Callable[[threading.Event], None]:
    """Makes the topic of heartbeats and keeps the task that writes to it."""
    tasks = TaskKeeper(host, report)
    settings = config.client(target, "producer")
    task = BeatsTask(beats=beats, target=settings)

    def prepare() -> None:
        with ExitStack() as stack:
            cluster = opened(stack, config.client(target, "admin"))
            factors = [one.replication_factor for one in beats if one.replication_factor]
            given = min(factors, default=None)
            factor = chosen_replicas(given, _INTERNAL_REPLICAS, cluster)
            make_own_topic(cluster, HEARTBEATS, factor)

    def run(stop: threading.Event) -> None:
        failures = 0
        while not stop.wait(pause_s(failures) if failures else LOOK_S):
            try:
                prepare()
                break
            except (PenstockError, OSError) as error:
                failures += 1
                report(f"Heartbeats of {target}: {error}")
        tasks.keep({f"{target} heartbeats": task})
        try:
            while not stop.wait(LOOK_S):
                tasks.look(time.monotonic())
        finally:
            tasks.end()

    return run
