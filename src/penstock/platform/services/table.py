"""How each light service is run; its settings are in the table of platform/settings.py."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from penstock.http.server import Limits
from penstock.http.service import OpenService


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """What opens a service and what its server grants; both take the service's settings."""

    open: Callable[[Any], AbstractAsyncContextManager[OpenService]]
    limits: Callable[[Any], Limits] = lambda _: Limits()
    with_sockets: bool = False  # Whether it has WebSockets.
    with_http2: bool = False


def runner_of(name: str) -> Runner:
    """How to run the service of a name. Only what runs is imported."""
    return _RUNNERS[name]()


def _registry() -> Runner:
    from penstock.registry.service.process import open_service

    return Runner(open=open_service)


def _rest() -> Runner:
    from penstock.rest.process import limits_of, open_service

    return Runner(open=open_service, limits=limits_of, with_sockets=True)


def _sql() -> Runner:
    from penstock.sql.service.process import limits_of, open_service

    return Runner(open=open_service, limits=limits_of, with_sockets=True, with_http2=True)


_RUNNERS = {"registry": _registry, "rest": _rest, "sql": _sql}
