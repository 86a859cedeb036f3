"""Plug-ins that see every record on its way, and may change it.

A failing interceptor is logged and passed over: it must never cost a record.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from penstock.client.plugins import close, configure, load
from penstock.client.settings import as_list
from penstock.client.values import (
    ConsumerRecords,
    OffsetAndMetadata,
    ProducerRecord,
    RecordMetadata,
    TopicPartition,
)
from penstock.errors import ConfigError

log = logging.getLogger("penstock.client")


class ProducerInterceptor:
    """Override what is of interest. `configure` gets the producer's whole configuration."""

    def configure(self, settings: Mapping[str, object]) -> None:
        """Called once, before the first record."""

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Before serialization; what is returned is sent."""
        return record

    def on_acknowledgement(
        self, metadata: RecordMetadata | None, exception: Exception | None
    ) -> None:
        """When the broker has answered, or sending has failed; one of the two is None."""

    def close(self) -> None:
        """Called once, at the end."""


class ConsumerInterceptor:
    """Override what is of interest. `configure` gets the consumer's whole configuration."""

    def configure(self, settings: Mapping[str, object]) -> None:
        """Called once, before the first record."""

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        """Before poll returns; what is returned is what poll returns."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """After offsets were committed."""

    def close(self) -> None:
        """Called once, at the end."""


I = TypeVar("I", ProducerInterceptor, ConsumerInterceptor)  # noqa: E741


class Chain(Generic[I]):
    """Interceptors in order; each gets what the one before returned."""

    def __init__(self, given: object, kind: type[I], settings: Mapping[str, object]) -> None:
        self._all: list[I] = [_instantiate(one, kind) for one in as_list(given)]
        for one in self._all:
            configure(one, settings)

    def __bool__(self) -> bool:
        return bool(self._all)

    def pass_through(self, method: str, value: Any) -> Any:
        """Hand a value from one to the next."""
        for one in self._all:
            try:
                value = getattr(one, method)(value)
            except Exception:
                log.warning("Interceptor %r failed in %s.", one, method, exc_info=True)
        return value

    def tell(self, method: str, *values: object) -> None:
        """Tell all of them."""
        for one in self._all:
            try:
                getattr(one, method)(*values)
            except Exception:
                log.warning("Interceptor %r failed in %s.", one, method, exc_info=True)

    def close(self) -> None:
        """Close all of them."""
        for one in self._all:
            close(one)


def _instantiate(given: object, kind: type[I]) -> I:
    found = load(given) if isinstance(given, str) else given
    made = found() if isinstance(found, type) else found
    if not isinstance(made, kind):
        raise ConfigError(f"interceptor.classes: {made!r} is not a {kind.__name__}")
    return made


def names_plugins(settings: Mapping[str, object], keys: Iterable[str]) -> bool:
    """Whether a configuration brings plug-ins, which may have settings of their own."""
    return any(settings.get(key) for key in keys)
