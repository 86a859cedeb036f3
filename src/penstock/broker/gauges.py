"""What a scrape sees of the broker at that moment: logs, partitions, connections, memory."""

import resource
from collections.abc import Iterator
from contextlib import suppress

from penstock.broker.context import Broker
from penstock.cluster.image.image import NO_LEADER
from penstock.groups.coordinator import GROUP_STATES
from penstock.telemetry import families
from penstock.telemetry.metrics import Gauge


def watch_broker(broker: Broker) -> None:
    def copied(topic: str, size_bytes: int) -> None:
        broker.metrics.topic(topic).replication_bytes_in += size_bytes

    broker.partitions.around.on_copied = copied
    broker.metrics.watch(lambda: _logs(broker))
    broker.metrics.watch(lambda: _log_dirs(broker))
    broker.metrics.watch(lambda: _partitions(broker))
    broker.metrics.watch(lambda: _cluster(broker))
    broker.metrics.watch(lambda: _groups(broker))
    broker.metrics.watch(broker.quotas.gauges)
    broker.metrics.watch(_process)


def _logs(broker: Broker) -> Iterator[Gauge]:
    for partition in broker.partitions.hosted():
        labels = {"topic": partition.topic, "partition": str(partition.partition)}
        log = partition.log
        yield Gauge("kafka_log_log_size", labels, log.size_bytes)
        yield Gauge("kafka_log_log_logendoffset", labels, log.log_end_offset)
        yield Gauge("kafka_log_log_logstartoffset", labels, log.log_start_offset)
        yield Gauge("kafka_log_log_numlogsegments", labels, len(log.segments))


def _log_dirs(broker: Broker) -> Iterator[Gauge]:
    for found in broker.log_dirs.dirs:
        labels, room = {"logDirectory": str(found.path)}, found.room
        yield Gauge(families.LOG_DIR_FULL, labels, int(room.is_full))
        yield Gauge(families.REFUSED_APPENDS, labels, room.refused_count)
        with suppress(OSError):  # A disk that failed may not even tell its size.
            yield Gauge(families.LOG_DIR_TOTAL_BYTES, labels, room.total_bytes())
            yield Gauge(families.LOG_DIR_USABLE_BYTES, labels, room.usable_bytes())


def _partitions(broker: Broker) -> Iterator[Gauge]:
    hosted = tuple(broker.partitions.hosted())
    leading = [(p, len(p.state.isr)) for p in hosted if p.is_leader and p.state is not None]
    around = broker.partitions.around
    prefix = "kafka_server_replicamanager"
    yield Gauge(f"{prefix}_partitioncount", {}, len(hosted))
    yield Gauge(f"{prefix}_leadercount", {}, len(leading))
    lacking = sum(1 for p, isr in leading if isr < len(p.replicas))
    yield Gauge(f"{prefix}_underreplicatedpartitions", {}, lacking)
    yield Gauge(
        f"{prefix}_underminisrpartitioncount", {}, sum(isr < p.isr_needed for p, isr in leading)
    )
    yield Gauge(
        f"{prefix}_atminisrpartitioncount", {}, sum(isr == p.isr_needed for p, isr in leading)
    )
    offline = sum(1 for p in hosted if p.log.failure is not None)
    yield Gauge(f"{prefix}_offlinereplicacount", {}, offline)
    yield Gauge(f"{prefix}_isrshrinks_total", {}, around.isr_shrink_count)
    yield Gauge(f"{prefix}_isrexpands_total", {}, around.isr_expand_count)
    yield Gauge(f"{prefix}_failedisrupdates_total", {}, around.isr_failed_count)
    max_lag = max((p.lag for p in hosted), default=0)
    labels = {"clientId": "Replica"}
    yield Gauge("kafka_server_replicafetchermanager_maxlag", labels, max_lag)
    sessions = len(broker.fetch_sessions)
    yield Gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", {}, sessions)


def _cluster(broker: Broker) -> Iterator[Gauge]:
    image = broker.image
    is_controller = image.controller_id == broker.broker_id
    partitions = sum(len(topic.partitions) for topic in image.topics.values())
    yield Gauge("kafka_controller_kafkacontroller_activecontrollercount", {}, int(is_controller))
    yield Gauge("kafka_controller_kafkacontroller_globaltopiccount", {}, len(image.topics))
    yield Gauge("kafka_controller_kafkacontroller_globalpartitioncount", {}, partitions)
    yield from _controller(broker)


def _controller(broker: Broker) -> Iterator[Gauge]:
    """What only the controller counts; of another broker it is 0, as in Kafka."""
    controller = broker.controller
    leaderless = away = unclean = 0
    if controller is not None:
        unclean = controller.unclean_elections
        for _, partition in controller.image.all_partitions():
            leaderless += partition.state.leader == NO_LEADER
            away += partition.state.leader != partition.replicas[0]
    prefix = "kafka_controller_kafkacontroller"
    yield Gauge(f"{prefix}_offlinepartitionscount", {}, leaderless)
    yield Gauge(f"{prefix}_preferredreplicaimbalancecount", {}, away)
    yield Gauge("kafka_controller_controllerstats_uncleanleaderelections_total", {}, unclean)


def _groups(broker: Broker) -> Iterator[Gauge]:
    prefix = "kafka_coordinator_group_groupmetadatamanager"
    states, offset_count = broker.groups.counts()
    yield Gauge(f"{prefix}_numgroups", {}, sum(states.values()))
    yield Gauge(f"{prefix}_numoffsets", {}, offset_count)
    for state in GROUP_STATES:
        yield Gauge(f"{prefix}_numgroups{state.lower()}", {}, states[state])


def _process() -> Iterator[Gauge]:
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield Gauge("process_resident_memory_max_bytes", {}, peak_kb * 1024)
