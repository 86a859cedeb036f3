"""The demo's platform: broker, registry and REST proxy under the supervisor of `penstock up`.

The supervisor runs on a thread of ours. What dies is started again while the demo goes on.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import CommandError, ConfigError
from penstock.platform.probing import TakenPort
from penstock.platform.settings import platform_settings
from penstock.platform.tree import ProcessTree, Report

_LOOK_S = 0.05
# Where each address can be changed.
VARIABLES = {"broker": "PENSTOCK_ADDRESS", "registry": "PENSTOCK_REGISTRY", "rest": "PENSTOCK_REST"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where the demo listens, each as host:port."""

    broker: str = "localhost:9092"
    registry: str = "localhost:8081"
    rest: str = "localhost:8082"

    @property
    def settings(self) -> dict[str, str]:
        """The same as `penstock up` has them."""
        for service, variable in VARIABLES.items():
            _check_form(variable, getattr(self, service))
        return {
            "listeners": f"PLAINTEXT://{self.broker}",
            "registry.listeners": f"http://{self.registry}",
            "rest.listeners": f"http://{self.rest}",
        }


class DemoPlatform:
    """The processes; they end with us, whatever happens to us."""

    def __init__(
        self, addresses: Addresses, data: Path, own: Path, overrides: Mapping[str, str]
    ) -> None:
        given = {**addresses.settings, "log.dirs": str(data), **overrides}
        self.report: Report = lambda text: print(text, flush=True)
        self._tree = ProcessTree(
            platform_settings(given, own), report=lambda text: self.report(text)
        )
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="platform")
        self._thread.start()

    def wait_until_ready(self, stop: threading.Event) -> None:
        """Return when everything answers, or when told to stop; raise what kept it from it."""
        while not self._tree.is_up and not stop.wait(_LOOK_S):
            self.check()

    def check(self) -> None:
        """Raise what ended the supervisor."""
        if isinstance(self._failure, TakenPort):
            raise _explained(self._failure) from self._failure
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """In good order, so that the next start needs no recovery."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._tree.run(self._stop)
        except BaseException as error:  # noqa: BLE001  (raised again by the main thread)
            self._failure = error


def _explained(taken: TakenPort) -> CommandError:
    door = taken.door
    host = door.host or "localhost"
    return CommandError(
        f"The demo's {door.service} cannot listen on {host}:{door.port}, {taken.reason}. Stop "
        "what listens there, or choose another address: "
        f"{VARIABLES[door.service]}={host}:{door.port + 1} make run"
    )


def _check_form(variable: str, address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"{variable}={address} is not host:port, such as localhost:9092.")
