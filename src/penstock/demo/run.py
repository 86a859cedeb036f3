"""The demo as one process: its parts in order, the loop that shows them, and their end.

Order matters at both ends: prices are on the screen before Spark is there, and the broker, which
all others need to stop in good order, stops last.
"""

import os
import shlex
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.parser import ToolParser, key_values
from penstock.cli.stopping import stop_on_signals
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.demo.platform import Addresses
    from penstock.demo.view import Screen, ScreenFacts
    from penstock.pipelines.supervisor import Supervisor

_SHOW_S = 0.25
_PRICES_PER_S = 200


def run(
    addresses: "Addresses",
    *,
    data: Path,
    overrides: Mapping[str, str] | None = None,
    prices_per_s: int = _PRICES_PER_S,
    master: str | None = None,
    screen: "Screen | None" = None,
    stop: threading.Event | None = None,
) -> int:
    """Run until a signal, or until `stop` is set; the exit code."""
    stop = stop or stop_on_signals()
    # The first line comes before anything slow is imported.
    print(f"Starting a broker at {addresses.broker}, with its data in {data} ...", flush=True)
    from penstock.demo.platform import DemoPlatform

    own = data / "demo"  # Not the name of a partition, so the broker leaves it alone.
    own.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        platform = DemoPlatform(addresses, data, own, overrides or {})
        stack.callback(platform.stop)
        platform.wait_until_ready(stop)
        if stop.is_set():
            return 0
        stack.callback(print, "Stopping ...", flush=True)
        parts = _Parts(addresses, own, prices_per_s=prices_per_s, master=master)
        stack.callback(parts.stop)
        screen = screen or _screen()
        stack.enter_context(screen)
        platform.report = screen.report
        parts.start(screen)
        while not stop.wait(_SHOW_S) and parts.supervising:
            platform.check()
            parts.check()
            screen.show(parts.reader.board, parts.facts(data))
        parts.check()
    return 0


class _Parts:
    """Generator, board and supervisor, on their threads."""

    def __init__(
        self, addresses: "Addresses", own: Path, *, prices_per_s: int, master: str | None
    ) -> None:
        from penstock.client.wire.cluster import ClusterClient
        from penstock.demo.board import BoardReader
        from penstock.demo.generator import Generator
        from penstock.demo.prices import stock_averages
        from penstock.pipelines.state import StateDir
        from penstock.pipelines.topics import create_missing

        self._addresses, self._own, self._master = addresses, own, master
        address = addresses.broker
        self._state = StateDir(own)
        self._table = own / "table"
        self._pipeline = stock_averages(str(self._table))
        with ClusterClient(address, client_id="penstock-demo") as cluster:
            create_missing(cluster, [self._pipeline])
        self.reader = BoardReader(address)
        known = self.reader.read_past()
        self._generator = Generator(address, per_s=prices_per_s, known=known)
        self._goes_on = bool(known)
        self._supervisor: Supervisor | None = None
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._phase = ""
        self._thread = threading.Thread(target=self._supervise, name="supervisor")

    @property
    def supervising(self) -> bool:
        return self._thread.is_alive()

    def start(self, screen: "Screen") -> None:
        from penstock.pipelines.supervisor import Order, Supervisor

        def report(text: str) -> None:
            self._phase = text
            screen.report(text)

        self.reader.start()
        self._generator.start()
        word = "go on from the last run" if self._goes_on else "flow"
        report(f"Stock prices {word}; Spark takes some seconds to start.")
        order = Order(
            pipelines=[self._pipeline],
            files={self._pipeline.name: str(Path(__file__).with_name("prices.py"))},
            state=self._state,
            settings={"bootstrap.servers": self._addresses.broker},
            master=self._master,
            conf={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"},
        )
        self._supervisor = Supervisor(order, report)
        self._thread.start()

    def check(self) -> None:
        """Raise what ended one of the threads."""
        for failure in (self._failure, self._generator.failure, self.reader.failure):
            if failure is not None:
                raise failure

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._generator.stop()
        self.reader.stop()

    def facts(self, data: Path) -> "ScreenFacts":
        from penstock.demo.view import ScreenFacts

        assert self._supervisor is not None
        return ScreenFacts(
            address=self._addresses.broker,
            registry=f"http://{self._addresses.registry}",
            rest=f"http://{self._addresses.rest}",
            data=str(data),
            table=str(self._table),
            command=_penstock(),
            state=str(self._own),
            phase=self._phase,
            sent=self._generator.sent,
            queries=[query for one in self._supervisor.statuses for query in one.queries],
        )

    def _supervise(self) -> None:
        assert self._supervisor is not None
        try:
            self._supervisor.run(self._stop)
        except BaseException as error:  # noqa: BLE001  (raised again by the main thread)
            self._failure = error


def _screen() -> "Screen":
    from penstock.demo.view import LiveScreen, PlainScreen

    return LiveScreen() if sys.stdout.isatty() else PlainScreen()


def _penstock() -> str:
    """The command as it can be typed here: by its short path where that leads to it."""
    path = Path(sys.executable).parent / "penstock"
    relative = os.path.relpath(path)
    return shlex.quote(relative if len(relative) < len(str(path)) else str(path))


def main(arguments: Sequence[str], *, data: Path) -> int:
    """With what the environment says: PENSTOCK_DATA, PENSTOCK_ADDRESS and others."""
    from penstock.demo.platform import VARIABLES, Addresses

    parser = ToolParser("make run", "The platform at work.")
    parser.add_argument("--override", action="append", default=[], help="key=value of the broker")
    options = parser.parse(arguments)
    given = os.environ.get("PENSTOCK_PRICES_PER_S", str(_PRICES_PER_S))
    if not given.isdigit() or int(given) == 0:
        raise ConfigError(f"PENSTOCK_PRICES_PER_S={given} is not a number of prices, such as 200")
    chosen = {name: os.environ[word] for name, word in VARIABLES.items() if word in os.environ}
    return run(
        Addresses(**chosen),
        data=Path(os.environ.get("PENSTOCK_DATA", data)),
        overrides=key_values(options.override, "--override"),
        prices_per_s=int(given),
        master=os.environ.get("SPARK_MASTER"),
    )
