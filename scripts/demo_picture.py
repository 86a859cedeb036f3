"""Records docs/demo.svg: the demo is run for real, and its screen kept once everything flows."""

import os
import socket
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from rich.console import Console

from penstock.demo.board import Board
from penstock.demo.platform import Addresses
from penstock.demo.run import run
from penstock.demo.view import ScreenFacts, picture

ROOT = Path(__file__).resolve().parent.parent
WINDOWS = 6  # Of each stock: enough for Spark to be warm.
LAG_MAX = 2_000  # Records: what ten seconds bring.
GIVE_UP_S = 300
WIDTH = 118


class Camera:
    """A screen that keeps the last picture, and ends the demo when it is worth keeping."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._give_up_s = time.monotonic() + GIVE_UP_S
        self.last: tuple[Board, ScreenFacts] | None = None

    def report(self, text: str) -> None:
        print(text, flush=True)

    def show(self, board: Board, facts: ScreenFacts) -> None:
        self.last = (board, facts)
        warm = board.windows >= WINDOWS * max(1, len(board.stocks))
        flowing = all(
            query.batch_ms and query.lag is not None and query.lag < LAG_MAX
            for query in facts.queries
        )
        if (warm and flowing) or time.monotonic() > self._give_up_s:
            self._stop.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def main() -> None:
    """Run the demo in a folder of its own, then draw what it showed."""
    stop = threading.Event()
    camera = Camera(stop)
    broker, registry, rest = (f"localhost:{port}" for port in free_ports(3))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run(
            Addresses(broker=broker, registry=registry, rest=rest),
            data=Path("data"),
            screen=camera,
            stop=stop,
        )
    assert camera.last is not None
    board, facts = camera.last
    shown = ScreenFacts(
        address="localhost:9092",  # As `make run` has it; the recording must not meet another.
        registry="http://localhost:8081",
        rest="http://localhost:8082",
        data="data",
        table="data/demo/table",
        command=".venv/bin/penstock",
        state="data/demo",
        phase=facts.phase,
        sent=facts.sent,
        queries=facts.queries,
    )
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(picture(board, shown))
    console.save_svg(str(ROOT / "docs" / "demo.svg"), title="make run")


if __name__ == "__main__":
    main()
