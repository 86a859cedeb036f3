"""The connectors of every store of objects; each store says its kind, and its names."""

from collections.abc import Mapping
from typing import Any, ClassVar

from penstock.connect.connectors.objects.settings import checked_sink
from penstock.connect.connectors.objects.sink import ObjectSinkTask
from penstock.connect.connectors.objects.source import (
    ObjectSourceTask,
    checked_source,
    read_so_far,
    shared_out,
)
from penstock.connect.plugins.config_def import CheckedConfig, ConfigDef
from penstock.connect.plugins.contract import (
    Config,
    ExactlyOnceSupport,
    SinkConnector,
    SourceConnector,
)
from penstock.records.topic_partition import TopicPartition


class ObjectSourceConnector(SourceConnector):
    """Tasks share the folders by their names."""

    task: ClassVar[type[ObjectSourceTask]]

    def __init__(self) -> None:
        self._config: Config = {}

    @classmethod
    def config_def(cls) -> ConfigDef:
        return cls.task.settings()

    @classmethod
    def task_class(cls) -> type:
        return cls.task

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return checked_source(cls.task.kind.checked(cls.config_def().validate(config)))

    def start(self, config: Config) -> None:
        self.task.kind.check(self.config_def().parse(config))
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return shared_out(self._config, max_tasks)

    def exactly_once_support(self, config: Config) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Config, offsets: Mapping[frozenset[tuple[str, Any]], Mapping[str, Any] | None]
    ) -> bool:
        for offset in offsets.values():
            read_so_far(offset)
        return True


class ObjectSinkConnector(SinkConnector):
    """Tasks share the partitions of the topics by their consumer group."""

    task: ClassVar[type[ObjectSinkTask]]

    def __init__(self) -> None:
        self._config: Config = {}

    @classmethod
    def config_def(cls) -> ConfigDef:
        return cls.task.settings()

    @classmethod
    def task_class(cls) -> type:
        return cls.task

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return cls.task.kind.checked(checked_sink(cls.config_def().validate(config)))

    def start(self, config: Config) -> None:
        self.task.kind.check(self.config_def().parse(config))
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._config) for _ in range(max_tasks)]

    def alter_offsets(self, config: Config, offsets: Mapping[TopicPartition, int | None]) -> bool:
        return True  # The store keeps no offsets: the group's are all there are.
