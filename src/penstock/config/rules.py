"""What broker settings mean together: which of several wins, and which cannot stand side by side.

`derive` turns the values as they were given into the values a broker acts on; `check_together`
refuses those that contradict each other. Both are functions of values alone, except that a
listener without a host is advertised under the name of the machine.
"""

from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Final

from penstock.config import listeners as addresses
from penstock.config.listeners import ListenerAddress
from penstock.config.settings import Value, attribute_name
from penstock.errors import ConfigError

Values = Mapping[str, Value]

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS

# Pairs where the first may not exceed the second.
_ORDERED: Final = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    ("add.partitions.to.txn.retry.backoff.ms", "add.partitions.to.txn.retry.backoff.max.ms"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
)

# Settings that have a `min` and a `max` of their own beside them.
_BOUNDED: Final = (
    ("group.consumer", "session.timeout.ms"),
    ("group.consumer", "heartbeat.interval.ms"),
    ("group.consumer", "assignment.interval.ms"),
    ("group.share", "session.timeout.ms"),
    ("group.share", "heartbeat.interval.ms"),
    ("group.share", "assignment.interval.ms"),
    ("group.share", "record.lock.duration.ms"),
    ("group.share", "delivery.count.limit"),
    ("group.share", "partition.max.record.locks"),
    ("group.streams", "session.timeout.ms"),
    ("group.streams", "heartbeat.interval.ms"),
    ("group.streams", "assignment.interval.ms"),
)


def derive(values: Values, given: Set[str], host_name: Callable[[], str]) -> dict[str, object]:
    """Every attribute of a BrokerConfig; `given` are the names somebody set."""
    protocols = addresses.parse_protocol_map(_text(values, "listener.security.protocol.map"))
    listeners = _listeners(values, given, protocols)
    advertised = _advertised(values, given, protocols, listeners, host_name)
    log_dirs = _log_dirs(values)
    return {attribute_name(name): value for name, value in values.items()} | {
        "listener_security_protocol_map": protocols,
        "listeners": listeners,
        "advertised_listeners": advertised,
        "inter_broker_listener_name": _between_brokers(values, given, advertised),
        "log_dirs": log_dirs,
        "log_retention_ms": _retention_ms(values),
        "log_segment_bytes": _or_else(values, "internal.segment.bytes", "log.segment.bytes"),
        "log_roll_ms": _either_ms(values, "log.roll"),
        "log_roll_jitter_ms": _either_ms(values, "log.roll.jitter"),
        "log_flush_interval_ms": _or_else(
            values, "log.flush.interval.ms", "log.flush.scheduler.interval.ms"
        ),
        "zookeeper_connection_timeout_ms": _or_else(
            values, "zookeeper.connection.timeout.ms", "zookeeper.session.timeout.ms"
        ),
        "num_replica_alter_log_dirs_threads": _whole(
            values, "num.replica.alter.log.dirs.threads", len(log_dirs)
        ),
        **_timestamp_bounds(values, given),
        "max_connections_per_ip_overrides": _per_address(values),
        "metrics_listeners": addresses.parse_http_listeners(
            "metrics.listeners", _list(values, "metrics.listeners")
        ),
    }


def check_together(values: Values, *, is_id_generated: bool = False) -> None:
    """Refuse values that are each allowed and contradict each other."""
    if not is_id_generated:
        _check_broker_id(values)
    for lesser, greater in _ORDERED:
        _check_order(values, lesser, greater)
    for family, rest in _BOUNDED:
        _check_order(values, f"{family}.min.{rest}", f"{family}.max.{rest}")
        _check_order(values, f"{family}.min.{rest}", f"{family}.{rest}")
        _check_order(values, f"{family}.{rest}", f"{family}.max.{rest}")
    for family in ("group.consumer", "group.share", "group.streams"):
        _check_heartbeat(values, family)
    _check_cleaner(values)
    _check_connections(values)
    if values["zookeeper.connect"] and values["penstock.shared.metadata"]:
        raise ConfigError("zookeeper.connect and penstock.shared.metadata are both set: remove one")


def _check_order(values: Values, lesser: str, greater: str) -> None:
    if _whole(values, lesser) > _whole(values, greater):
        raise ConfigError(
            f"{lesser} is {values[lesser]}:"
            f" it must be at most {greater}, which is {values[greater]}"
        )


def _check_heartbeat(values: Values, family: str) -> None:
    beat, session = f"{family}.heartbeat.interval.ms", f"{family}.session.timeout.ms"
    if _whole(values, beat) >= _whole(values, session):
        raise ConfigError(
            f"{beat} is {values[beat]}: it must be less than {session}, which is {values[session]}"
        )


def _check_broker_id(values: Values) -> None:
    broker_id = _whole(values, "broker.id")
    if not values["broker.id.generation.enable"]:
        if broker_id < 0:
            raise ConfigError(
                f"broker.id is {broker_id}: write a number from 0,"
                " or set broker.id.generation.enable to true"
            )
        return
    highest = _whole(values, "reserved.broker.max.id")
    if not -1 <= broker_id <= highest:
        raise ConfigError(
            f"broker.id is {broker_id}: it must be from -1 to {highest},"
            " which is reserved.broker.max.id"
        )


def _check_cleaner(values: Values) -> None:
    buffer_bytes = _whole(values, "log.cleaner.dedupe.buffer.size")
    threads = max(1, _whole(values, "log.cleaner.threads"))
    if buffer_bytes // threads <= 1 << 20:
        raise ConfigError(
            f"log.cleaner.dedupe.buffer.size is {buffer_bytes}:"
            f" it must be more than {threads << 20}, 1 MiB for each of log.cleaner.threads"
        )


def _check_connections(values: Values) -> None:
    if values["max.connections.per.ip"] == 0 and not values["max.connections.per.ip.overrides"]:
        raise ConfigError(
            "max.connections.per.ip is 0: nobody could connect;"
            " write at least 1, or name who may in max.connections.per.ip.overrides"
        )


def _listeners(
    values: Values, given: Set[str], protocols: dict[str, str]
) -> tuple[ListenerAddress, ...]:
    texts = _list(values, "listeners")
    if "listeners" not in given and given & {"port", "host.name"}:
        # Nothing listens beyond this machine unless somebody wrote so: a port alone does not.
        host = _text(values, "host.name") or "127.0.0.1"
        texts = (f"PLAINTEXT://{_bracketed(host)}:{values['port']}",)
    if not texts:
        raise ConfigError("listeners is empty: write at least one, as PLAINTEXT://127.0.0.1:9092")
    found = addresses.parse_listeners("listeners", texts, protocols)
    addresses.check_bindable(found)
    return found


def _advertised(
    values: Values,
    given: Set[str],
    protocols: dict[str, str],
    listeners: tuple[ListenerAddress, ...],
    host_name: Callable[[], str],
) -> tuple[ListenerAddress, ...]:
    texts = _list(values, "advertised.listeners")
    if texts:
        found = addresses.parse_listeners("advertised.listeners", texts, protocols)
    elif given & {"advertised.host.name", "advertised.port"}:
        found = (_advertised_by_parts(values, listeners[0]),)
    else:
        found = listeners
    _check_advertised(found, listeners)
    return tuple(
        listener if listener.host else listener._replace(host=host_name()) for listener in found
    )


def _advertised_by_parts(values: Values, listener: ListenerAddress) -> ListenerAddress:
    host = _text(values, "advertised.host.name") or listener.host
    return listener._replace(host=host, port=_whole(values, "advertised.port", listener.port))


def _check_advertised(
    advertised: tuple[ListenerAddress, ...], listeners: tuple[ListenerAddress, ...]
) -> None:
    names = {listener.name for listener in listeners}
    for listener in advertised:
        if listener.name not in names:
            raise ConfigError(
                f"advertised.listeners has {listener}, but no listener is named {listener.name}:"
                f" use {' or '.join(sorted(names))}, or add it to listeners"
            )
        if listener.host in addresses.ANY_ADDRESS:
            raise ConfigError(
                f"{listener} stands for every interface and no client can connect to it:"
                " write a host name clients can reach in advertised.listeners"
            )


def _between_brokers(
    values: Values, given: Set[str], advertised: tuple[ListenerAddress, ...]
) -> str:
    name = values["inter.broker.listener.name"]
    if name and "security.inter.broker.protocol" in given:
        raise ConfigError(
            "inter.broker.listener.name and security.inter.broker.protocol are both set:"
            " remove one of them"
        )
    names = [listener.name for listener in advertised]
    if not name and "security.inter.broker.protocol" not in given and len(names) == 1:
        return names[0]
    wanted = str(name or values["security.inter.broker.protocol"]).upper()
    if wanted not in names:
        raise ConfigError(
            f"brokers would connect to each other on {wanted}, which is not advertised:"
            f" set inter.broker.listener.name to {' or '.join(names)}"
        )
    return wanted


def _log_dirs(values: Values) -> tuple[Path, ...]:
    given = values["log.dirs"] is not None
    texts = _list(values, "log.dirs" if given else "log.dir")
    key = "log.dirs" if given else "log.dir"
    if not texts or not all(texts):
        raise ConfigError(f"{key} has an empty entry: write the directories, with commas between")
    if len(set(texts)) < len(texts):
        raise ConfigError(f"{key} is {','.join(texts)}: a directory is named twice")
    return tuple(Path(text) for text in texts)


def _retention_ms(values: Values) -> int:
    hours_ms = _whole(values, "log.retention.hours") * _HOUR_MS
    minutes = values["log.retention.minutes"]
    coarse_ms = (
        hours_ms if minutes is None else _whole(values, "log.retention.minutes") * _MINUTE_MS
    )
    retention_ms = _whole(values, "log.retention.ms", coarse_ms)
    if retention_ms == 0:
        raise ConfigError(
            "log.retention.ms, log.retention.minutes or log.retention.hours is 0:"
            " it must be at least 1, or -1 to keep records for ever"
        )
    return max(retention_ms, -1)


def _either_ms(values: Values, prefix: str) -> int:
    return _whole(values, f"{prefix}.ms", _whole(values, f"{prefix}.hours") * _HOUR_MS)


def _or_else(values: Values, name: str, other: str) -> int:
    return _whole(values, name, _whole(values, other))


def _timestamp_bounds(values: Values, given: Set[str]) -> dict[str, object]:
    if "log.message.timestamp.difference.max.ms" not in given:
        return {}
    both = ("log.message.timestamp.before.max.ms", "log.message.timestamp.after.max.ms")
    difference_ms = values["log.message.timestamp.difference.max.ms"]
    return {attribute_name(name): difference_ms for name in both if name not in given}


def _per_address(values: Values) -> dict[str, int]:
    limits: dict[str, int] = {}
    for pair in filter(None, _text(values, "max.connections.per.ip.overrides").split(",")):
        host, _, count = pair.strip().rpartition(":")
        if not host or not (count.isascii() and count.isdigit()):
            raise ConfigError(
                f"max.connections.per.ip.overrides has {pair.strip()}: write host:count"
            )
        limits[host.strip("[]")] = int(count)
    return limits


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _text(values: Values, name: str) -> str:
    value = values[name]
    return value if isinstance(value, str) else ""


def _list(values: Values, name: str) -> tuple[str, ...]:
    value = values[name]
    return value if isinstance(value, tuple) else ()


def _whole(values: Values, name: str, otherwise: int = 0) -> int:
    value = values[name]
    return value if isinstance(value, int) else otherwise
