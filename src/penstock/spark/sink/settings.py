"""The producer settings of a write (`kafka.*`), each of them honoured or refused by name.

Pure: text in, values out. Connections and their security are for `client.raw_cluster`; what is
left is how rows become batches, how batches are sent, and how long a transaction may stay open.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from penstock.client.wire.raw_produce import ProduceSettings
from penstock.records.compression import Codec
from penstock.spark.options import OptionError

T = TypeVar("T")

# A transaction stays open from the first row of a task to the commit of the whole batch. This is
# also the most that a broker allows unless it is told otherwise (transaction.max.timeout.ms).
TRANSACTION_TIMEOUT_MS = 15 * 60_000
# Kafka's 16 KB suit records that come one by one; here they come by the thousand.
_BATCH_BYTES = 512 * 1024
_REQUEST_BYTES_MAX = 1_048_576
_BUFFER_BYTES = 32 * 1024 * 1024
_MAX_BLOCK_MS = 15_000
_DELIVERY_TIMEOUT_MS = 120_000

_CODECS = {codec.name.lower(): codec for codec in Codec}
_LEVELS = {Codec.GZIP: range(1, 10), Codec.LZ4: range(1, 18), Codec.ZSTD: range(-131072, 23)}
_PARTITIONERS = ("DefaultPartitioner", "UniformStickyPartitioner", "RoundRobinPartitioner")
_JAVA_PACKAGE = "org.apache.kafka.clients.producer."

_OF_CONNECTIONS = ("security.", "ssl.", "sasl.")
_KNOWN = (
    "bootstrap.servers",
    "client.id",
    "acks",
    "batch.size",
    "buffer.memory",
    "compression.type",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "delivery.timeout.ms",
    "enable.idempotence",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "partitioner.class",
    "partitioner.ignore.keys",
    "request.timeout.ms",
    "retries",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "transaction.timeout.ms",
)
_REFUSED = {
    "transactional.id": "the sink gives each task its own; set 'transactionalIdPrefix' instead",
    "transaction.two.phase.commit.enable": "the driver commits by the ordinary protocol",
    "group.id": "a write reads nothing; 'transactionalIdPrefix' names its transactions and groups",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """How to write."""

    connection: Mapping[str, str]  # For `cluster_for`.
    produce: ProduceSettings
    is_idempotent: bool
    batch_bytes: int
    buffer_bytes: int
    linger_ms: int | None  # None: a batch waits until it is full or the task ends.
    codec: Codec
    level: int | None  # None: the codec's own default.
    ignore_keys: bool
    round_robin: bool
    transaction_timeout_ms: int


def sink_settings(settings: Mapping[str, str], *, exactly_once: bool) -> SinkSettings:
    """Sort and check; OptionError names the first setting that cannot be honoured."""
    given = _Given(settings)
    acks = given.choice("acks", {"all": -1, "-1": -1, "1": 1, "0": 0}, default=-1)
    is_idempotent = given.flag("enable.idempotence", default=acks == -1)
    _check_acks(acks, is_idempotent=is_idempotent, exactly_once=exactly_once)
    in_flight = given.number("max.in.flight.requests.per.connection", 5, least=1)
    if is_idempotent and in_flight > 5:
        raise OptionError(
            "Option 'kafka.max.in.flight.requests.per.connection' must be at most 5 for the "
            f"idempotent producer, not {in_flight}"
        )
    codec = given.choice("compression.type", _CODECS, default=Codec.NONE)
    request_timeout_ms = given.number("request.timeout.ms", 30_000, least=1)
    delivery_timeout_ms = given.number("delivery.timeout.ms", _DELIVERY_TIMEOUT_MS, least=1)
    request_bytes = given.number("max.request.size", _REQUEST_BYTES_MAX, least=1)
    partitioner = _partitioner(given)
    return SinkSettings(
        connection=_connection(settings, delivery_timeout_ms),
        produce=ProduceSettings(
            acks=acks,
            request_bytes_max=request_bytes,
            request_timeout_ms=request_timeout_ms,
            delivery_timeout_ms=delivery_timeout_ms,
            max_block_ms=given.number("max.block.ms", _MAX_BLOCK_MS, least=0),
            retry_backoff_ms=given.number("retry.backoff.ms", 100, least=0),
            retry_backoff_max_ms=given.number("retry.backoff.max.ms", 1_000, least=0),
            retries=given.number("retries", 2_147_483_647, least=0),
        ),
        is_idempotent=is_idempotent,
        batch_bytes=min(max(given.number("batch.size", _BATCH_BYTES, least=0), 1), request_bytes),
        buffer_bytes=given.number("buffer.memory", _BUFFER_BYTES, least=1),
        linger_ms=given.number("linger.ms", 0, least=0) if "linger.ms" in settings else None,
        codec=codec,
        level=_level(given, codec),
        ignore_keys=given.flag("partitioner.ignore.keys", default=False)
        or partitioner == "UniformStickyPartitioner",
        round_robin=partitioner == "RoundRobinPartitioner",
        transaction_timeout_ms=given.number(
            "transaction.timeout.ms", TRANSACTION_TIMEOUT_MS, least=1
        ),
    )


class _Given:
    """Settings by their names, which must all be known."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings
        for name in settings:
            if name in _REFUSED:
                raise OptionError(f"Option 'kafka.{name}' is not supported: {_REFUSED[name]}")
            if name not in _KNOWN and not name.startswith(_OF_CONNECTIONS):
                near = get_close_matches(name, _KNOWN, n=1, cutoff=0.75)
                hint = f"; did you mean 'kafka.{near[0]}'?" if near else ""
                raise OptionError(
                    f"Option 'kafka.{name}' is not honoured by a penstock write: remove it{hint}"
                )

    def number(self, name: str, default: int, *, least: int) -> int:
        text = self.settings.get(name)
        if text is None:
            return default
        try:
            value = int(text)
        except ValueError:
            raise OptionError(f"Option 'kafka.{name}' must be a number, not {text!r}") from None
        if not least <= value <= 2**63 - 1:
            raise OptionError(f"Option 'kafka.{name}' must be at least {least}, not {value}")
        return value

    def choice(self, name: str, allowed: Mapping[str, T], *, default: T) -> T:
        text = self.settings.get(name)
        if text is None:
            return default
        if text.strip().lower() not in allowed:
            raise OptionError(f"Option 'kafka.{name}' must be {_either(allowed)}, not {text!r}")
        return allowed[text.strip().lower()]

    def flag(self, name: str, *, default: bool) -> bool:
        return self.choice(name, {"true": True, "false": False}, default=default)


def _check_acks(acks: int, *, is_idempotent: bool, exactly_once: bool) -> None:
    if acks == 0:
        raise OptionError(
            "Option 'kafka.acks' must be all or 1: with 0 nobody would know whether a row arrived"
        )
    if exactly_once and not is_idempotent:
        raise OptionError(
            "Option 'kafka.enable.idempotence' must be true, and 'kafka.acks' all, to write "
            "exactly once; or set the option 'delivery' to at-least-once"
        )
    if is_idempotent and acks != -1:
        raise OptionError(
            "Option 'kafka.acks' must be all in order to use the idempotent producer. Otherwise "
            "we cannot guarantee idempotence"
        )


def _level(given: _Given, chosen: Codec) -> int | None:
    """Levels of all codecs are checked; that of the chosen one counts, as in Kafka."""
    found: int | None = None
    for codec, allowed in _LEVELS.items():
        name = f"compression.{codec.name.lower()}.level"
        if name not in given.settings:
            continue
        level = given.number(name, 0, least=allowed[0])
        if codec is Codec.GZIP and level == -1:
            continue
        if level not in allowed:
            raise OptionError(f"Option 'kafka.{name}' must be at most {allowed[-1]}, not {level}")
        found = level if codec is chosen else found
    return found


def _partitioner(given: _Given) -> str | None:
    text = given.settings.get("partitioner.class")
    if text is None:
        return None
    simple = text.removeprefix(_JAVA_PACKAGE).removeprefix("internals.")
    if simple not in _PARTITIONERS:
        raise OptionError(
            f"Option 'kafka.partitioner.class' must be {_either(_PARTITIONERS)}, not {text!r}; "
            "the column 'partition' can hold any other choice"
        )
    return simple


def _connection(settings: Mapping[str, str], delivery_timeout_ms: int) -> dict[str, str]:
    names = ("bootstrap.servers", "client.id", "request.timeout.ms", "retry.backoff.ms")
    connection = {
        name: value
        for name, value in settings.items()
        if name in names or name.startswith(_OF_CONNECTIONS)
    }
    # Whatever the sink asks of a cluster may take as long as the delivery of a record.
    connection["default.api.timeout.ms"] = str(delivery_timeout_ms)
    return connection


def _either(allowed: Mapping[str, object] | tuple[str, ...]) -> str:
    *front, last = allowed
    return f"{', '.join(front)} or {last}"
