"""The settings of several broker processes, made of the settings of one.

Ids and ports go up from what was given, each process has its directories below the given ones, and
all share the metadata of the first. Pure, except that a directory is asked what it is already.
"""

from collections.abc import Iterable, Mapping
from itertools import count as count_up
from pathlib import Path
from typing import Final

from penstock.config.broker import BrokerConfig
from penstock.config.listeners import ListenerAddress
from penstock.config.processes import (
    METADATA_FILE,
    PROCESSES,
    left_out,
    left_out_sentence,
    process_count,
    process_dir,
)
from penstock.config.properties import read_properties
from penstock.errors import ConfigError

PROCESSES_MAX: Final = 16
SHARED: Final = "penstock.shared.metadata"
_CORES_MIN: Final = 4
_CHOSEN_MAX: Final = 8
_MEMORY_EACH_BYTES: Final = 1 << 30
_CLEAN_STOP: Final = ".kafka_cleanshutdown"


def count_for(cores: int, memory_bytes: int, log_dirs: Iterable[Path]) -> int:
    """How many processes to start when nobody said so.

    Directories that were used keep the count they have. New ones get half of the cores, up to
    eight, each with a gigabyte of memory to itself; below four cores, one.
    """
    known = process_count(tuple(log_dirs))
    if known:
        return known
    if cores < _CORES_MIN:
        return 1
    return max(1, min(cores // 2, _CHOSEN_MAX, memory_bytes // (2 * _MEMORY_EACH_BYTES)))


def checked_count(text: str) -> int:
    """The number that was written; ConfigError for one that cannot be."""
    if not text.isdigit() or not 1 <= int(text) <= PROCESSES_MAX:
        raise ConfigError(f"processes is {text}: write a number from 1 to {PROCESSES_MAX}")
    return int(text)


def broker_row(given: Mapping[str, str], count: int) -> tuple[dict[str, str], ...]:
    """What each process is told; ConfigError says why there cannot be so many."""
    config = BrokerConfig(dict(given))
    _refuse_left_out(config, count)
    if count == 1:
        return (dict(given),)
    _refuse(config, count)
    first_id = _first_id(config)
    step = port_step(_ports(config), count)
    return tuple(
        {**_defaults(count), **given, **_own(config, number, first_id, step * number)}
        for number in range(count)
    )


def port_step(ports: Iterable[int], count: int) -> int:
    """The smallest distance at which the ports of all processes differ."""
    known = {port for port in ports if port}
    for step in count_up(1):
        if len({port + step * number for port in known for number in range(count)}) == count * len(
            known
        ):
            return step
    raise AssertionError("a step as wide as all ports together is always there")


def _ports(config: BrokerConfig) -> list[int]:
    return [one.port for one in (*config.listeners, *config.metrics_listeners)]


def _refuse_left_out(config: BrokerConfig, count: int) -> None:
    found = left_out(config.log_dirs, count)
    if found is not None:
        raise ConfigError(left_out_sentence(found, count))


def _refuse(config: BrokerConfig, count: int) -> None:
    if config.zookeeper_connect:
        raise ConfigError(
            "zookeeper.connect is set, and several processes of one command share a file instead: "
            "remove it, or start each broker of that cluster by itself"
        )
    if any(not one.port for one in config.listeners):
        raise ConfigError("listeners asks for any free port: write one, the next ones follow it")
    highest = max(_ports(config)) + port_step(_ports(config), count) * (count - 1)
    if highest > 65_535:
        raise ConfigError(f"listeners leaves no ports for {count} processes: write a lower one")
    for root in config.log_dirs:
        if _was_cut_off_alone(root):
            raise ConfigError(
                f"{root} was written by one broker alone that did not stop in good order: start "
                "it once without --processes and stop it, then it can become several"
            )


def _was_cut_off_alone(root: Path) -> bool:
    """Only a broker in company leaves notes from which a crash can be judged."""
    is_used = (root / "meta.properties").exists()
    return is_used and not (root / PROCESSES).exists() and not (root / _CLEAN_STOP).exists()


def _first_id(config: BrokerConfig) -> int:
    if config.broker_id >= 0:
        return config.broker_id
    note = config.log_dirs[0] / "meta.properties"
    known = read_properties(note) if note.exists() else {}
    return int(known.get("broker.id") or known.get("node.id") or 0)


def _defaults(count: int) -> dict[str, str]:
    """Copies of the internal topics: as many as Kafka's own defaults where there are brokers."""
    copies = str(min(3, count))
    return {
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": "2" if count > 2 else "1",
    }


def _own(config: BrokerConfig, number: int, first_id: int, shift: int) -> dict[str, str]:
    roots = config.log_dirs
    own = {
        "broker.id": str(first_id + number),
        "listeners": _shifted(config.listeners, shift),
        "log.dirs": ",".join(str(process_dir(root, number).absolute()) for root in roots),
        SHARED: str((roots[0] / METADATA_FILE).absolute()),
    }
    if "node.id" in config.static:
        own["node.id"] = own["broker.id"]
    if "advertised.listeners" in config.static:
        own["advertised.listeners"] = _shifted(config.advertised_listeners, shift)
    if config.metrics_listeners:
        own["metrics.listeners"] = _shifted(config.metrics_listeners, shift)
    return own


def _shifted(listeners: Iterable[ListenerAddress], shift: int) -> str:
    return ",".join(str(one._replace(port=one.port + shift)) for one in listeners)
