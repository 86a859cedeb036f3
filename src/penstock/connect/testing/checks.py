"""Configurations as a worker checks them before it takes a connector."""

from collections.abc import Mapping
from typing import Any

from penstock.connect.plugins.libraries import missing_libraries
from penstock.errors import ConfigError

STRINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def refused_settings(connector: Any, config: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What is wrong with a connector's own settings, by name; empty: it would be taken."""
    found: dict[str, tuple[str, ...]] = connector.validate(config).errors()
    absent = missing_libraries(connector)
    return found | ({"connector.class": tuple(absent)} if absent else {})


def task_config(
    connector: Any, config: Mapping[str, str], *, task: int, tasks_max: int
) -> dict[str, str]:
    """The configuration of one task, after the connector was checked, started and asked."""
    wrong = refused_settings(connector, config)
    if wrong:
        lines = [f"{name}: {sentence}" for name, each in wrong.items() for sentence in each]
        raise ConfigError("; ".join(lines))
    made = connector()
    made.start(config)
    try:
        configs: list[dict[str, str]] = made.task_configs(tasks_max)
    finally:
        made.stop()
    if len(configs) > tasks_max:
        raise AssertionError(f"task_configs({tasks_max}) gave {len(configs)} configurations")
    if task >= len(configs):
        raise AssertionError(f"there is no task {task}: the connector has {len(configs)}")
    return configs[task]
