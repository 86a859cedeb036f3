"""Connectors that are told by two attributes: their settings and the class of their tasks.

    class WeatherSource(DeclaredSource):
        CONFIG = ConfigDef(...)
        TASK = WeatherTask

A source has one task and a sink as many as it may have; whoever splits its work in another way
overrides `task_configs`.
"""

from typing import Any, ClassVar

from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.contract import (
    Config,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
)


class _Declared:
    CONFIG: ClassVar[ConfigDef]
    TASK: ClassVar[type]

    def __init__(self) -> None:
        self.config: Config = {}
        self.parsed: dict[str, Any] = {}

    @classmethod
    def config_def(cls) -> ConfigDef:
        return cls.CONFIG

    @classmethod
    def task_class(cls) -> type:
        return cls.TASK

    def start(self, config: Config) -> None:
        self.parsed = self.CONFIG.parse(config)
        self.config = config


class DeclaredSource(_Declared, SourceConnector):
    """A source with one task."""

    TASK: ClassVar[type[SourceTask]]

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.config)]


class DeclaredSink(_Declared, SinkConnector):
    """A sink whose tasks are all the same."""

    TASK: ClassVar[type[SinkTask]]

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.config) for _ in range(max_tasks)]


def dealt(items: list[str], hands: int) -> list[list[str]]:
    """Items given out in turns to at most so many, none of whom gets nothing."""
    count = max(1, min(len(items), hands))
    return [items[first::count] for first in range(count)]
