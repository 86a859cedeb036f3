"""Settings of topics, brokers, loggers and groups, as kafka-configs shows and changes them."""

from collections.abc import Mapping, Sequence

from penstock.cli.tools.configs.entities import Entity
from penstock.client.admin import Admin
from penstock.client.operations.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    Operation,
    ResourceType,
)

_TYPES = {
    "topics": ResourceType.TOPIC,
    "brokers": ResourceType.BROKER,
    "broker-loggers": ResourceType.BROKER_LOGGER,
    "client-metrics": ResourceType.CLIENT_METRICS,
    "groups": ResourceType.GROUP,
}
# Which source makes a setting the entity's own; loggers are all shown.
_OWN = {
    "topics": ConfigSource.DYNAMIC_TOPIC_CONFIG,
    "brokers": ConfigSource.DYNAMIC_BROKER_CONFIG,
    "client-metrics": ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    "groups": ConfigSource.DYNAMIC_GROUP_CONFIG,
}


def describe(admin: Admin, entity: Entity, *, everything: bool) -> None:
    """Print the settings of one entity, or of all of its type."""
    missing = "doesn't exist and doesn't have dynamic config."
    for one in _expanded(admin, entity):
        if one.type == "topics" and not _topic_exists(admin, one):
            print(f"The topic '{one.name}' {missing}")
            continue
        print(title(one, everything=everything))
        resource = ConfigResource(_TYPES[one.type], one.name or "")
        for entry in sorted(admin.describe_configs([resource])[resource], key=_by_name):
            if everything or is_own(entry, one):
                print(entry_line(entry))


def alter(admin: Admin, entity: Entity, added: Mapping[str, str], deleted: Sequence[str]) -> None:
    """Set and delete keys of one entity."""
    changes = [ConfigChange(name=key, value=value) for key, value in added.items()]
    changes += [ConfigChange(name=key, operation=Operation.DELETE) for key in deleted]
    admin.alter_configs({ConfigResource(_TYPES[entity.type], entity.name or ""): changes})
    print(completed(entity))


def completed(entity: Entity) -> str:
    """The sentence after an alteration."""
    if entity.is_default:
        return f"Completed updating default config for {entity.type} in the cluster."
    return f"Completed updating config for {entity.type.removesuffix('s')} {entity.name}."


def title(entity: Entity, *, everything: bool) -> str:
    """The line above the settings of an entity."""
    if entity.is_default:
        return f"Default configs for {entity.type} in the cluster are:"
    kind = "All" if everything else "Dynamic"
    return f"{kind} configs for {entity.type.removesuffix('s')} {entity.name} are:"


def entry_line(entry: ConfigEntry) -> str:
    """`  name=value sensitive=false synonyms={SOURCE:name=value, ...}`."""
    synonyms = ", ".join(f"{s.source.name}:{s.name}={_text(s.value)}" for s in entry.synonyms)
    sensitive = str(entry.is_sensitive).lower()
    return f"  {entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def is_own(entry: ConfigEntry, entity: Entity) -> bool:
    """Whether a setting was made for this entity and is not a default of others."""
    if entity.type == "brokers" and entity.is_default:
        return entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return _OWN.get(entity.type, entry.source) is entry.source


def _expanded(admin: Admin, entity: Entity) -> list[Entity]:
    if not entity.covers_all:
        return [entity]
    if entity.type == "topics":
        return [Entity("topics", topic.name) for topic in admin.list_topics()]
    if entity.type == "brokers":
        brokers = admin.describe_cluster().brokers
        named = [Entity("brokers", str(broker.node.id)) for broker in brokers]
        return [*named, Entity("brokers", "")]
    return [Entity(entity.type, name) for name in admin.list_config_resources(_TYPES[entity.type])]


def _topic_exists(admin: Admin, entity: Entity) -> bool:
    return any(topic.name == entity.name for topic in admin.list_topics())


def _by_name(entry: ConfigEntry) -> str:
    return entry.name


def _text(value: str | None) -> str:
    return "null" if value is None else value
