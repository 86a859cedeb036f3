"""What AlterConfigs and IncrementalAlterConfigs make of a resource's configuration.

Pure functions: what is stored and what is asked for come in, what to store goes out, or an error
that answers the client in Apache Kafka's words. Nothing is stored here.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from penstock.config.broker import DYNAMIC_ONLY, LISTENER_PREFIX, BrokerConfig, setting_of
from penstock.config.group import GROUP_SETTINGS, parse_group_config
from penstock.config.settings import LIST, PER_BROKER, READ_ONLY, BadValue, Setting, to_text
from penstock.config.topic import TOPIC_SETTINGS, canonical_name, parse_topic_config
from penstock.errors import ConfigError, InvalidConfiguration, InvalidRequest


class AlterConfigOpType(IntEnum):
    """What IncrementalAlterConfigs does with a key, as numbered on the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """One key of an incremental request."""

    name: str
    operation: int
    value: str | None


# TLS material belongs to a listener; without its prefix it is fixed at the start.
_ONLY_PER_LISTENER: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)

# Settings of a listener that hold for all brokers alike.
_LISTENER_FOR_ALL: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)

_MIN_ISR: Final = "min.insync.replicas"
_OPERATIONS: Final = frozenset(int(operation) for operation in AlterConfigOpType)

LOG_LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")


def alter_topic(
    current: Mapping[str, str], changes: Sequence[AlterConfigOp], config: BrokerConfig
) -> dict[str, str]:
    """A topic's overrides after an incremental change."""
    renamed = [change._replace(name=canonical_name(change.name)) for change in changes]
    new = apply_changes(current, renamed, TOPIC_SETTINGS.get)
    _as_invalid_config(lambda: parse_topic_config(new, config))
    return new


def replace_topic(
    entries: Iterable[tuple[str, str | None]], config: BrokerConfig
) -> dict[str, str]:
    """A topic's overrides when a request states all of them."""
    new = _unique((canonical_name(name), value) for name, value in entries)
    _as_invalid_config(lambda: parse_topic_config(new, config))
    return new


def alter_group(
    current: Mapping[str, str], changes: Sequence[AlterConfigOp], config: BrokerConfig
) -> dict[str, str]:
    """A group's overrides after an incremental change."""
    new = apply_changes(current, changes, GROUP_SETTINGS.get)
    _as_invalid_config(lambda: parse_group_config(new, config))
    return new


def replace_group(
    entries: Iterable[tuple[str, str | None]], config: BrokerConfig
) -> dict[str, str]:
    """A group's overrides when a request states all of them."""
    new = _unique(entries)
    _as_invalid_config(lambda: parse_group_config(new, config))
    return new


def alter_broker(
    current: Mapping[str, str],
    changes: Sequence[AlterConfigOp],
    config: BrokerConfig,
    *,
    cluster_wide: bool,
) -> dict[str, str]:
    """The dynamic settings of a broker, or of all brokers, after an incremental change."""
    _refuse_edits(changes)
    new = apply_changes(current, changes, setting_of)
    _check_broker(new, config, cluster_wide=cluster_wide)
    is_named = any(change.name == _MIN_ISR for change in changes)
    _check_min_isr(current, new, is_named=is_named, cluster_wide=cluster_wide)
    return new


def replace_broker(
    current: Mapping[str, str],
    entries: Iterable[tuple[str, str | None]],
    config: BrokerConfig,
    *,
    cluster_wide: bool,
) -> dict[str, str]:
    """The dynamic settings of a broker, or of all brokers, when a request states all of them."""
    new = _unique(entries)
    _check_broker(new, config, cluster_wide=cluster_wide)
    _check_min_isr(current, new, is_named=_MIN_ISR in new, cluster_wide=cluster_wide)
    return new


def alter_loggers(
    changes: Sequence[AlterConfigOp], known: Collection[str]
) -> dict[str, str | None]:
    """The level each named logger is to have; None: that of the logger above it."""
    _check_changes(changes)
    return {change.name: _level(change, known) for change in changes}


def apply_changes(
    current: Mapping[str, str],
    changes: Sequence[AlterConfigOp],
    setting: Callable[[str], Setting | None],
) -> dict[str, str]:
    """Set, delete, append and subtract, each key at most once."""
    _check_changes(changes)
    new = dict(current)
    for name, number, value in changes:
        operation = AlterConfigOpType(number)
        if operation is AlterConfigOpType.DELETE:
            new.pop(name, None)
        elif operation is AlterConfigOpType.SET:
            new[name] = value or ""
        else:
            new[name] = _edited_list(new.get(name), setting(name), name, operation, value or "")
    return new


def _check_changes(changes: Sequence[AlterConfigOp]) -> None:
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        raise InvalidRequest("Error due to duplicate config keys")
    without = [
        c.name for c in changes if c.value is None and c.operation != AlterConfigOpType.DELETE
    ]
    if without:
        raise InvalidRequest(f"Null value not supported for : {', '.join(without)}")
    for change in changes:
        if change.operation not in _OPERATIONS:
            raise InvalidRequest(f"Unknown operations type {change.operation}")


def _edited_list(
    current: str | None,
    setting: Setting | None,
    name: str,
    operation: AlterConfigOpType,
    value: str,
) -> str:
    if setting is None or setting.type != LIST:
        raise InvalidConfiguration(
            f"Can't {operation.name} to key {name} because its type is not LIST."
        )
    # What is not stated stands at its default, and that is what an edit starts from.
    start = current if current is not None else to_text(setting.default) or ""
    old, edit = _items(start), _items(value)
    if operation is AlterConfigOpType.APPEND:
        return ",".join([*old, *(item for item in dict.fromkeys(edit) if item not in old)])
    return ",".join(item for item in old if item not in edit)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _unique(entries: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    pairs = list(entries)
    _check_changes([AlterConfigOp(name, AlterConfigOpType.SET, value) for name, value in pairs])
    return {name: value for name, value in pairs if value is not None}


def _as_invalid_config(check: Callable[[], object]) -> None:
    try:
        check()
    except ConfigError as error:
        raise InvalidConfiguration(str(error)) from error


def _refuse_edits(changes: Sequence[AlterConfigOp]) -> None:
    """Apache Kafka's brokers look at these themselves, and have other words than controllers."""
    for name, operation, _ in changes:
        if operation not in (AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT):
            continue
        setting = setting_of(name)
        if setting is None:
            raise InvalidConfiguration(f"Unknown config name: {name}")
        if setting.type != LIST:
            verb = AlterConfigOpType(operation).name.lower()
            raise InvalidConfiguration(f"Config value {verb} is not allowed for config key: {name}")


def _check_min_isr(
    current: Mapping[str, str], new: Mapping[str, str], *, is_named: bool, cluster_wide: bool
) -> None:
    """Eligible leaders (KIP-966) rest on one number for all brokers, which is always stored.

    One that is stored for a single broker may only go.
    """
    is_removed = _MIN_ISR in current and _MIN_ISR not in new
    if cluster_wide and is_removed:
        raise InvalidConfiguration(
            f"Cluster-level {_MIN_ISR} cannot be removed while ELR is enabled."
        )
    if not cluster_wide and is_named and not is_removed:
        raise InvalidConfiguration(
            f"Broker-level {_MIN_ISR} cannot be altered while ELR is enabled."
        )


def _check_broker(new: Mapping[str, str], config: BrokerConfig, *, cluster_wide: bool) -> None:
    _refuse(new, _is_fixed, "Cannot update these configs dynamically")
    _refuse(
        new,
        _ONLY_PER_LISTENER.__contains__,
        "These security configs can be dynamically updated only per-listener"
        " using the listener prefix",
    )
    _check_broker_types(new)
    if cluster_wide:
        _refuse(
            new,
            _is_per_broker,
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    try:
        if cluster_wide:
            config.with_dynamic_strict(new, config.per_broker)
        else:
            config.with_dynamic_strict(config.cluster_wide, new)
    except ConfigError as error:
        raise InvalidRequest(str(error)) from error


def _check_broker_types(new: Mapping[str, str]) -> None:
    for name, text in new.items():
        setting = setting_of(name)
        if setting is None:
            continue
        try:
            setting.parse(text)
        except BadValue as error:
            raise InvalidRequest(error.kafka_sentence) from error


def _refuse(new: Mapping[str, str], wrong: Callable[[str], bool], sentence: str) -> None:
    names = sorted(name for name in new if wrong(name))
    if names:
        raise InvalidRequest(f"{sentence}: [{', '.join(names)}]")


def _is_fixed(name: str) -> bool:
    """A name that no setting has is stored, and stays without effect: a plugin may know it."""
    setting = setting_of(name)
    return setting is not None and setting.dynamic == READ_ONLY


def _is_per_broker(name: str) -> bool:
    setting = setting_of(name)
    if setting is None or name in DYNAMIC_ONLY:
        return False
    if name.startswith(LISTENER_PREFIX):
        return setting.name not in _LISTENER_FOR_ALL
    return setting.dynamic == PER_BROKER


def _level(change: AlterConfigOp, known: Collection[str]) -> str | None:
    if change.operation in (AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT):
        verb = AlterConfigOpType(change.operation).name
        raise InvalidRequest(f"{verb} operation is not allowed for the BROKER_LOGGER resource")
    if change.name not in known:
        raise InvalidConfiguration(f"Logger {change.name} does not exist!")
    if change.operation == AlterConfigOpType.DELETE:
        if change.name == "root":
            raise InvalidRequest("Removing the log level of the root logger is not allowed")
        return None
    if change.value not in LOG_LEVELS:
        raise InvalidConfiguration(
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported"
            f" log level. Valid log levels are {', '.join(LOG_LEVELS)}"
        )
    return change.value
