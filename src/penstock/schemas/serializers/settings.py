"""The settings of serializers, under Confluent's names."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.client.settings import as_bool, as_int, as_list
from penstock.errors import ConfigError
from penstock.schemas.registry_client import RegistryClient
from penstock.schemas.subject_names import SubjectNameStrategy, find_strategy, topic_name

_CREDENTIALS = ("USER_INFO", "URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class SerializerSettings:
    """What a serializer or deserializer does about schemas."""

    registry: RegistryClient
    is_key: bool
    strategy: SubjectNameStrategy
    auto_register: bool  # Register the schema; else it must be there.
    normalize: bool
    use_latest: bool  # Write or read under the latest schema of the subject.
    latest_metadata: Mapping[str, str] | None  # The latest that has these properties.
    schema_id: int | None  # Write under this schema, whatever the subject says.

    @classmethod
    def of(
        cls,
        settings: Mapping[str, object],
        *,
        is_key: bool,
        registry: RegistryClient | None = None,
    ) -> "SerializerSettings":
        """From a client's configuration."""
        metadata = _properties(settings)
        use_latest = _flag(settings, "use.latest.version", default=False)
        schema_id = settings.get("use.schema.id")
        found = use_latest or metadata is not None or schema_id is not None
        auto_register = _flag(settings, "auto.register.schemas", default=not found)
        if found and auto_register:
            raise ConfigError(
                "auto.register.schemas=true and use.latest.version, use.latest.with.metadata or "
                "use.schema.id contradict each other: give one of them"
            )
        return cls(
            registry=registry or registry_of(settings),
            is_key=is_key,
            strategy=_strategy(settings, is_key),
            auto_register=auto_register,
            normalize=_flag(settings, "normalize.schemas", default=False),
            use_latest=use_latest,
            latest_metadata=metadata,
            schema_id=None if schema_id is None else as_int("use.schema.id", schema_id),
        )

    @property
    def wants_latest(self) -> bool:
        """Whether the registry says what to write or read by."""
        return self.use_latest or self.latest_metadata is not None

    def subject(self, topic: str, record: str | None) -> str:
        """Where the schema of a topic's keys or values is registered."""
        return self.strategy(topic, self.is_key, record)


def registry_of(settings: Mapping[str, object]) -> RegistryClient:
    """The client of the registry that a configuration names."""
    urls = ",".join(str(url) for url in as_list(settings.get("schema.registry.url", "")))
    if not urls:
        raise ConfigError(
            "schema.registry.url is missing: say where the schema registry is, "
            "such as http://localhost:8081"
        )
    ttl_s = as_int("latest.cache.ttl.sec", settings.get("latest.cache.ttl.sec", -1))
    timeout_ms = as_int(
        "schema.registry.request.timeout.ms",
        settings.get("schema.registry.request.timeout.ms", 10_000),
    )
    return RegistryClient(
        urls,
        basic_auth=_basic_auth(settings),
        bearer_token=_either(settings, "bearer.auth.token"),
        ca_location=_ca_location(settings),
        timeout_s=timeout_ms / 1000,
        latest_ttl_s=None if ttl_s < 0 else ttl_s,
    )


def _basic_auth(settings: Mapping[str, object]) -> str | None:
    """URL: the addresses hold user and password themselves."""
    source = _either(settings, "basic.auth.credentials.source")
    if source is not None and source not in _CREDENTIALS:
        raise ConfigError(
            f"basic.auth.credentials.source={source} is not one of {', '.join(_CREDENTIALS)}"
        )
    found = _either(settings, "basic.auth.user.info")
    if source == "USER_INFO" and found is None:
        raise ConfigError("basic.auth.credentials.source=USER_INFO needs basic.auth.user.info")
    return None if source == "URL" else found


def _ca_location(settings: Mapping[str, object]) -> str | None:
    for name in ("ssl.ca.location", "ssl.truststore.location"):
        found = settings.get(f"schema.registry.{name}")
        if found is not None:
            if str(found).lower().endswith((".jks", ".p12", ".pfx", ".truststore")):
                raise ConfigError(f"schema.registry.{name}={found} must be a PEM file")
            return str(found)
    return None


def _either(settings: Mapping[str, object], name: str) -> str | None:
    """With or without the prefix; both are written in the wild."""
    found = settings.get(f"schema.registry.{name}", settings.get(name))
    return None if found is None else str(found)


def _flag(settings: Mapping[str, object], name: str, *, default: bool) -> bool:
    found = settings.get(name)
    return default if found is None else as_bool(name, found)


def _strategy(settings: Mapping[str, object], is_key: bool) -> SubjectNameStrategy:
    name = f"{'key' if is_key else 'value'}.subject.name.strategy"
    found = settings.get(name, settings.get("subject.name.strategy"))
    if found is None:
        return topic_name
    return found if callable(found) else find_strategy(str(found))


def _properties(settings: Mapping[str, object]) -> Mapping[str, str] | None:
    """`application.major.version=2,owner=shop`, or a mapping."""
    name = "use.latest.with.metadata"
    found = settings.get(name)
    if found is None:
        return None
    if isinstance(found, Mapping):
        return {str(key): str(value) for key, value in found.items()}
    pairs = [str(word).partition("=") for word in as_list(found)]
    if not pairs or any(not key.strip() or not mark for key, mark, _ in pairs):
        raise ConfigError(f"{name}={found} is no list of name=value")
    return {key.strip(): value.strip() for key, _, value in pairs}
