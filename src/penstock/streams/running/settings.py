"""The settings of an application, under Kafka Streams' names; each is honoured or refused by name.

What is not named here goes to the clients as it is: security, timeouts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ConfigError
from penstock.streams.tasks.failures import FailureLog

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once_v2", "at_least_once"
_INTERVAL_MS = 100
_PURGE_MS = 30_000
_OURS = (
    "application.id",
    "bootstrap.servers",
    "state.dir",
    "processing.guarantee",
    "commit.interval.ms",
    "auto.offset.reset",
    "replication.factor",
    "errors.dead.letter.queue.topic.name",
    "windowstore.changelog.additional.retention.ms",
    "repartition.purge.interval.ms",
    "max.records.per.batch",
    "shuffle.partitions",
    "statestore.cache.max.bytes",
)
_REFUSED = {
    "num.stream.threads": "Spark decides how many tasks run at once; see --master",
    "num.standby.replicas": "state lies in the checkpoint, and a stage goes on from there",
    "application.server": "one process answers interactive queries; any number may follow",
    "cache.max.bytes.buffering": "it is called statestore.cache.max.bytes",
    "default.key.serde": "give serdes to StreamsBuilder(key=..., value=...)",
    "default.value.serde": "give serdes to StreamsBuilder(key=..., value=...)",
    "topology.optimization": "the plan is Kafka Streams' without optimization",
    "group.id": "application.id is the group",
    "transactional.id": "each task of a stage has its own",
}
_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsSettings:
    """How an application runs."""

    application_id: str
    client: Mapping[str, str]  # bootstrap.servers and what the clients need besides.
    state_dir: Path
    exactly_once: bool = True
    interval_ms: int = _INTERVAL_MS  # A batch of a stage begins at most this often.
    reset: str = "earliest"
    replication_factor: int = -1  # As the broker has it.
    dead_letters: str | None = None  # None: stop at a record that cannot be read.
    failures: FailureLog | None = None  # None: nobody is told of what fails for a record.
    window_retention_extra_ms: int = _DAY_MS
    purge_every_ms: int = _PURGE_MS  # Repartition topics, behind what was committed.
    records_max: int | None = None  # Of a batch; None: as many as suit a stage.
    places: int | None = None  # Of Spark's tasks; None: as many as cores.
    merges: bool = True  # What a batch adds to a key is one result.

    @property
    def folder(self) -> Path:
        """Where this application's state lies."""
        return self.state_dir / self.application_id


def streams_settings(given: Mapping[str, object]) -> StreamsSettings:
    """Sort and check; ConfigError names the first setting that cannot be honoured."""
    raw = {name: str(value) for name, value in given.items() if value is not None}
    for name in ("application.id", "bootstrap.servers"):
        if not raw.get(name, "").strip():
            raise ConfigError(
                f'Missing required configuration "{name}" which has no default value.'
            )
    for name, reason in _REFUSED.items():
        if name in raw:
            raise ConfigError(f"{name} is not supported: {reason}.")
    return StreamsSettings(
        application_id=_named(raw["application.id"]),
        client={name: value for name, value in raw.items() if name not in _OURS[:1] + _OURS[2:]},
        state_dir=Path(raw.get("state.dir", "~/.penstock/streams")).expanduser(),
        exactly_once=_choice(raw, "processing.guarantee", (EXACTLY_ONCE, AT_LEAST_ONCE))
        == EXACTLY_ONCE,
        interval_ms=_number(raw, "commit.interval.ms", _INTERVAL_MS, least=0),
        reset=_choice(raw, "auto.offset.reset", ("earliest", "latest")),
        replication_factor=_number(raw, "replication.factor", -1, least=-1),
        dead_letters=raw.get("errors.dead.letter.queue.topic.name"),
        window_retention_extra_ms=_number(
            raw, "windowstore.changelog.additional.retention.ms", _DAY_MS, least=0
        ),
        purge_every_ms=_number(raw, "repartition.purge.interval.ms", _PURGE_MS, least=0),
        records_max=_number(raw, "max.records.per.batch", 0, least=0) or None,
        places=_number(raw, "shuffle.partitions", 0, least=0) or None,
        merges=_number(raw, "statestore.cache.max.bytes", 1, least=0) > 0,
    )


def _named(application_id: str) -> str:
    legal = all(character.isalnum() or character in "._-" for character in application_id)
    if not legal or application_id in (".", "..") or not application_id.isascii():
        raise ConfigError(
            f"application.id {application_id!r} must be of letters, digits, '.', '_' and '-': its "
            "topics are named after it."
        )
    return application_id


def _choice(raw: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = raw.get(name, allowed[0])
    if value not in allowed:
        raise ConfigError(f"{name} must be {' or '.join(allowed)}, not {value!r}.")
    return value


def _number(raw: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    try:
        value = int(raw.get(name, default))
    except ValueError:
        raise ConfigError(f"{name} must be a number, not {raw[name]!r}.") from None
    if value < least:
        raise ConfigError(f"{name} must be at least {least}, not {value}.")
    return value
