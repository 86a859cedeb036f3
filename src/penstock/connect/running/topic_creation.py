"""Topics that a source writes to and that are not there yet (KIP-158): made as its settings say.

`topic.creation.default.*` switches it on; `topic.creation.groups` names rules for some of the
topics, of which the first that fits a topic holds. Without them it is left to the brokers whether a
topic comes into being.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from penstock.client.operations.topics import NewTopic
from penstock.client.values import ProducerRecord
from penstock.connect.records import SourceRecord
from penstock.connect.running.source_loop import SourceSteps
from penstock.errors import ConfigError, TopicExists, UnknownTopicOrPartition

_PREFIX: Final = "topic.creation."
GROUPS: Final = f"{_PREFIX}groups"
_DEFAULT: Final = "default"
_PARTITIONS, _REPLICAS = "partitions", "replication.factor"
_INCLUDE, _EXCLUDE = "include", "exclude"
_BROKERS_CHOICE: Final = -1


class TopicAdmin(Protocol):
    """As much of `Admin` as it takes."""

    def describe_topics(self, names: list[str], /) -> Mapping[str, object]: ...
    def create_topics(self, new: list[NewTopic], /) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRule:
    """How the topics are made whose names fit `include`, unless they fit `exclude`."""

    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]
    partitions: int
    replicas: int
    configs: Mapping[str, str]

    def fits(self, topic: str) -> bool:
        """Whether a topic is one of them; patterns fit whole names."""
        if any(one.fullmatch(topic) for one in self.exclude):
            return False
        return any(one.fullmatch(topic) for one in self.include)

    def new_topic(self, name: str) -> NewTopic:
        """The topic to be made."""
        return NewTopic(
            name=name,
            partitions=self.partitions,
            replication_factor=self.replicas,
            configs=self.configs,
        )


def topic_rules(config: Mapping[str, str]) -> tuple[TopicRule, ...]:
    """The rules in their order, the default last; none where nothing is to be made.

    ConfigError names a setting that is missing or wrong.
    """
    by_default = _own(config, _DEFAULT)
    aliases = [word.strip() for word in config.get(GROUPS, "").split(",") if word.strip()]
    if not by_default and not aliases:
        return ()
    for name in (_REPLICAS, _PARTITIONS):
        if name not in by_default:
            raise ConfigError(
                f'Missing required configuration "{_PREFIX}{_DEFAULT}.{name}"'
                " which has no default value."
            )
    last = _rule(_DEFAULT, {_INCLUDE: ".*", **by_default}, {})
    return (*(_rule(alias, _own(config, alias), by_default) for alias in aliases), last)


def _own(config: Mapping[str, str], alias: str) -> dict[str, str]:
    prefix = f"{_PREFIX}{alias}."
    return {k.removeprefix(prefix): v for k, v in config.items() if k.startswith(prefix)}


def _rule(alias: str, own: Mapping[str, str], by_default: Mapping[str, str]) -> TopicRule:
    known = (_PARTITIONS, _REPLICAS, _INCLUDE, _EXCLUDE)
    if _INCLUDE not in own:
        raise ConfigError(
            f'Missing required configuration "{_PREFIX}{alias}.{_INCLUDE}"'
            " which has no default value."
        )
    return TopicRule(
        include=_patterns(alias, own, _INCLUDE),
        exclude=_patterns(alias, own, _EXCLUDE),
        partitions=_number(alias, {**by_default, **own}, _PARTITIONS),
        replicas=_number(alias, {**by_default, **own}, _REPLICAS),
        configs={name: text for name, text in own.items() if name not in known},
    )


def _patterns(alias: str, own: Mapping[str, str], name: str) -> tuple[re.Pattern[str], ...]:
    words = [word.strip() for word in own.get(name, "").split(",") if word.strip()]
    try:
        return tuple(re.compile(word) for word in words)
    except re.error as error:
        setting = f"{_PREFIX}{alias}.{name}"
        raise ConfigError(
            f"Invalid value {own[name]} for configuration {setting}: {error}"
        ) from error


def _number(alias: str, own: Mapping[str, str], name: str) -> int:
    """At least one, or -1: as the brokers do by themselves."""
    try:
        number = int(own[name])
    except ValueError:
        number = 0
    if number < 1 and number != _BROKERS_CHOICE:
        raise ConfigError(
            f"Invalid value {own[name]} for configuration {_PREFIX}{alias}.{name}: it must be"
            " positive, or -1 to use the broker's default"
        )
    return number


class TopicMaker:
    """Sees to it, once for each topic, that it is there before records are sent to it."""

    def __init__(
        self,
        rules: tuple[TopicRule, ...],
        open_admin: Callable[[], AbstractContextManager[TopicAdmin]],
    ) -> None:
        self._rules = rules
        self._open_admin = open_admin
        self._seen: set[str] = set()

    @property
    def makes_any(self) -> bool:
        """Whether there is a rule at all."""
        return bool(self._rules)

    def ensure(self, topic: str) -> None:
        """Make the topic if it is missing; raises what the brokers say."""
        if topic in self._seen or not self._rules:
            return
        rule = next((one for one in self._rules if one.fits(topic)), None)
        if rule is not None:
            with self._open_admin() as admin:
                _make(admin, rule.new_topic(topic))
        self._seen.add(topic)


def _make(admin: TopicAdmin, new: NewTopic) -> None:
    try:
        admin.describe_topics([new.name])
    except UnknownTopicOrPartition:
        try:
            admin.create_topics([new])
        except TopicExists:
            return  # Another task was faster.


class TopicsFirst:
    """Steps of a source behind which each record's topic is there."""

    def __init__(self, steps: SourceSteps, maker: TopicMaker) -> None:
        self._steps = steps
        self._maker = maker

    def to_producer(self, record: SourceRecord) -> ProducerRecord[bytes, bytes] | None:
        made = self._steps.to_producer(record)
        if made is not None:
            self._maker.ensure(made.topic)
        return made
