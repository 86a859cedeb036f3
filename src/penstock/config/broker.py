"""A broker's configuration: every setting a broker knows, and one immutable value that holds them.

The values come in layers, the later winning: the defaults of the tables, the properties file and
the command line (static), what an operator set for all brokers, what an operator set for this one.
`BrokerConfig` keeps the layers, because DescribeConfigs tells where each value comes from.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NoReturn

from penstock.config import rules
from penstock.config.fields import BrokerFields
from penstock.config.properties import read_properties
from penstock.config.settings import READ_ONLY, Setting, SettingTable, Value, to_print
from penstock.config.tables import (
    groups,
    log,
    observation,
    quotas,
    replication,
    sasl,
    security,
    server,
    shares,
    transactions,
    validation,
    zookeeper,
)
from penstock.errors import ConfigError

TABLES: Final = (
    server,
    log,
    replication,
    zookeeper,
    groups,
    shares,
    transactions,
    quotas,
    observation,
    security,
    sasl,
    validation,
)

BROKER_SETTINGS: Final = SettingTable(setting for table in TABLES for setting in table.SETTINGS)

# Throttles an operator sets while data moves; a properties file cannot hold them.
DYNAMIC_ONLY: Final = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)

# Read by the authorizer itself, in Kafka too: not in the table of the broker's own settings.
OF_AUTHORIZER: Final = frozenset({"super.users", "allow.everyone.if.no.acl.found"})

LISTENER_PREFIX: Final = "listener.name."

_DEFAULTS: Final = BROKER_SETTINGS.defaults()

# Two names of one setting: the left one is read where it is given, the right one is kept.
_RENAMED: Final = (
    ("node.id", "broker.id"),
    ("delegation.token.master.key", "delegation.token.secret.key"),
)


class BrokerConfig(BrokerFields):
    """The settings of one broker: an attribute for each, and where each value came from."""

    values: Mapping[str, Value]  # By dotted name, as given or by default, before any rule.
    static: Mapping[str, str]
    cluster_wide: Mapping[str, str]
    per_broker: Mapping[str, str]
    warnings: tuple[str, ...]  # What was given last and is not used, one sentence each.

    def __init__(
        self,
        static: Mapping[str, str],
        *,
        cluster_wide: Mapping[str, str] | None = None,
        per_broker: Mapping[str, str] | None = None,
        warnings: Iterable[str] | None = None,
        host_name: Callable[[], str] | None = None,
        is_id_generated: bool = False,
    ) -> None:
        layers = (_known_static(static), cluster_wide or {}, per_broker or {})
        values = _DEFAULTS.copy()
        given = set().union(*layers)
        for layer in layers:
            values.update(_parsed(layer))
        _follow_renamed(values, given)
        rules.check_together(values, is_id_generated=is_id_generated)
        attributes = rules.derive(values, given, host_name or canonical_host_name)
        self.__dict__.update(
            attributes,
            values=values,
            static=dict(static),
            cluster_wide=dict(layers[1]),
            per_broker=dict(layers[2]),
            warnings=tuple(_unknown_warnings(static) if warnings is None else warnings),
            _stored=(layers[1], layers[2]),
            _host_name=host_name,
            _is_id_generated=is_id_generated,
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a BrokerConfig does not change: make a new one to set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a BrokerConfig does not change: {name} stays")

    def __repr__(self) -> str:
        return f"BrokerConfig(broker_id={self.broker_id}, {len(self.static)} static settings)"

    @property
    def is_in_cluster(self) -> bool:
        """Whether there are other brokers: behind a ZooKeeper, or on this machine."""
        return bool(self.zookeeper_connect or self.penstock_shared_metadata)

    def with_static(
        self, overrides: Mapping[str, str], *, is_id_generated: bool | None = None
    ) -> "BrokerConfig":
        """The same with further static settings, as when a broker without a number gets one.

        A generated number may be above those that people may give.
        """
        if is_id_generated is None:
            is_id_generated = self.__dict__["_is_id_generated"]
        return BrokerConfig(
            {**self.static, **overrides},
            cluster_wide=self.cluster_wide,
            per_broker=self.per_broker,
            host_name=self.__dict__["_host_name"],
            is_id_generated=is_id_generated,
        )

    def with_dynamic(
        self, cluster_wide: Mapping[str, str], per_broker: Mapping[str, str]
    ) -> "BrokerConfig":
        """The same under what the metadata store holds for all brokers and for this one.

        An entry there that cannot be used is told in `warnings` and left out: one bad entry must
        not keep a broker from starting. What a client asks to set is checked before it is stored,
        by `altered.py`. Where the store holds what it held before, the answer is this very value.
        """
        if self.__dict__["_stored"] == (cluster_wide, per_broker):
            return self
        warnings: list[str] = []
        usable = (_usable_dynamic(cluster_wide, warnings), _usable_dynamic(per_broker, warnings))
        none: dict[str, str] = {}
        for for_all, for_one in (usable, (usable[0], none), (none, none)):
            try:
                new = self._with_layers(for_all, for_one, warnings)
            except ConfigError as error:
                warnings.append(f"dynamic settings are left out: {error}")
            else:
                new.__dict__["_stored"] = (dict(cluster_wide), dict(per_broker))
                return new
        raise AssertionError("the static settings alone have been accepted before")

    def with_dynamic_strict(
        self, cluster_wide: Mapping[str, str], per_broker: Mapping[str, str]
    ) -> "BrokerConfig":
        """The same under dynamic settings that must all be usable, or ConfigError."""
        return self._with_layers(cluster_wide, per_broker, ())

    def _with_layers(
        self,
        cluster_wide: Mapping[str, str],
        per_broker: Mapping[str, str],
        warnings: Iterable[str],
    ) -> "BrokerConfig":
        return BrokerConfig(
            self.static,
            cluster_wide=cluster_wide,
            per_broker=per_broker,
            warnings=warnings,
            host_name=self.__dict__["_host_name"],
            is_id_generated=self.__dict__["_is_id_generated"],
        )

    def for_listener(self, listener: str, name: str) -> Value:
        """A setting as one listener has it: `listener.name.internal.<name>`, or `<name>` itself."""
        own = f"{LISTENER_PREFIX}{listener.lower()}.{name}"
        for layer in (self.per_broker, self.cluster_wide, self.static):
            if own in layer:
                return BROKER_SETTINGS[name].parse(layer[own])
        return self.values[name]

    def has_for_listener(self, listener: str, name: str) -> bool:
        """Whether one listener has a value of its own."""
        own = f"{LISTENER_PREFIX}{listener.lower()}.{name}"
        return any(own in layer for layer in (self.per_broker, self.cluster_wide, self.static))

    def for_mechanism(self, listener: str, mechanism: str, name: str) -> Value:
        """A setting as one SASL mechanism of a listener has it; a login is never for several."""
        own = f"{LISTENER_PREFIX}{listener.lower()}.{mechanism.lower()}.{name}"
        for layer in (self.per_broker, self.cluster_wide, self.static):
            if own in layer:
                return BROKER_SETTINGS[name].parse(layer[own])
        return None if name == "sasl.jaas.config" else self.for_listener(listener, name)


def load(file: Path | None, overrides: Mapping[str, str]) -> BrokerConfig:
    """The configuration of a properties file and of the command line, which wins."""
    return BrokerConfig({**(read_properties(file) if file else {}), **overrides})


def describe_values(config: BrokerConfig) -> str:
    """What a broker prints at its start: every setting, in the form Kafka's users know."""
    lines = (
        f"\t{name} = {to_print(value)}\n"
        for name, value in sorted(config.values.items())
        if name not in DYNAMIC_ONLY
    )
    return "KafkaConfig values: \n" + "".join(lines)


def setting_of(name: str) -> Setting | None:
    """The setting a name stands for; one of a single listener stands for the plain one."""
    if name in BROKER_SETTINGS:
        return BROKER_SETTINGS[name]
    if not name.startswith(LISTENER_PREFIX):
        return None
    _, _, rest = name.removeprefix(LISTENER_PREFIX).partition(".")
    if rest in BROKER_SETTINGS:
        return BROKER_SETTINGS[rest]
    # SASL settings may name their mechanism too: listener.name.x.plain.sasl.jaas.config.
    _, _, below = rest.partition(".")
    is_of_mechanism = below.startswith("sasl.") or below == "connections.max.reauth.ms"
    return BROKER_SETTINGS[below] if is_of_mechanism and below in BROKER_SETTINGS else None


def canonical_host_name() -> str:
    """The name of this machine, for a listener that has none; asked for only then."""
    import socket  # Not needed by most processes that read a configuration.

    return socket.getfqdn()


def _known_static(static: Mapping[str, str]) -> dict[str, str]:
    return {
        name: text
        for name, text in static.items()
        if setting_of(name) is not None and name not in DYNAMIC_ONLY
    }


def _parsed(layer: Mapping[str, str]) -> dict[str, Value]:
    parsed: dict[str, Value] = {}
    for name, text in layer.items():
        setting = setting_of(name)
        if setting is None:
            continue  # Stored by somebody; described, and obeyed by nobody.
        value = setting.parse(text)
        if setting.name == name:
            parsed[name] = value
    return parsed


def _follow_renamed(values: dict[str, Value], given: set[str]) -> None:
    for other, name in _RENAMED:
        if other in given and name in given and values[other] != values[name]:
            raise ConfigError(f"{other} and {name} differ: they are one setting, remove one")
        if other in given:
            values[name] = values[other]
        values[other] = values[name]


def _usable_dynamic(layer: Mapping[str, str], warnings: list[str]) -> dict[str, str]:
    usable: dict[str, str] = {}
    for name, text in layer.items():
        setting = setting_of(name)
        if setting is None:
            warnings.append(_unknown_warning(name))
            usable[name] = text
            continue
        try:
            if setting.dynamic == READ_ONLY:
                raise ConfigError(f"{name} cannot be set while a broker runs")
            setting.parse(text)
        except ConfigError as error:
            warnings.append(f"a dynamic setting is left out: {error}")
        else:
            usable[name] = text
    return usable


def _unknown_warnings(static: Mapping[str, str]) -> list[str]:
    return [
        _unknown_warning(name)
        for name in static
        if (setting_of(name) is None and name not in OF_AUTHORIZER) or name in DYNAMIC_ONLY
    ]


def _unknown_warning(name: str) -> str:
    if name in DYNAMIC_ONLY:
        return f"{name} can only be set while the broker runs, with kafka-configs: it is ignored"
    import difflib  # Only somebody who mistyped a name pays for it.

    close = difflib.get_close_matches(name, BROKER_SETTINGS, n=1, cutoff=0.85)
    hint = f", did you mean {close[0]}?" if close else ""
    return f"{name} is not a setting this broker knows: it is ignored{hint}"
