"""The demo's broker: the ordinary `penstock server` as a process of its own, on its defaults."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import CommandError

_READY_S = 30.0
_STOP_S = 20.0
_PR_SET_PDEATHSIG = 1


class DemoBroker:
    """A broker process; it ends with us, whatever happens to us."""

    def __init__(self, address: str, data: Path, log: Path, extra: Sequence[str] = ()) -> None:
        self.address = address
        self._log = log
        command = [sys.executable, "-m", "penstock.cli.main", "server"]
        settings = {"listeners": f"PLAINTEXT://{address}", "log.dirs": str(data)}
        for name, value in settings.items():
            command += ["--override", f"{name}={value}"]
        check_free(address)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as target:
            self._process = subprocess.Popen(
                [*command, *extra],
                stdin=subprocess.DEVNULL,
                stdout=target,
                stderr=subprocess.STDOUT,
                # Ctrl-C goes to the whole group of the terminal; the broker is to stop last.
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )

    def wait_until_ready(self) -> None:
        """Return when it answers; CommandError with its own words if it ended instead."""
        from penstock.client.errors import ClientError
        from penstock.client.wire.connection import BrokerConnection, parse_addresses

        (host, port), *_ = parse_addresses(self.address)
        give_up_s = time.monotonic() + _READY_S
        while time.monotonic() < give_up_s:
            if self._process.poll() is not None:
                raise CommandError(f"The broker did not start: {self._last_line()}")
            try:
                BrokerConnection(host, port, "penstock-demo", timeout_s=2).close()
                return
            except ClientError:
                time.sleep(0.05)
        raise CommandError(f"The broker did not answer at {self.address}; {self._log} tells why.")

    def check_alive(self) -> None:
        """CommandError if it has ended on its own."""
        if self._process.poll() is not None:
            raise CommandError(f"The broker has ended: {self._last_line()}")

    def stop(self) -> None:
        """In good order, so that the next start needs no recovery."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _last_line(self) -> str:
        lines = [
            line for line in self._log.read_text(errors="replace").splitlines() if line.strip()
        ]
        return f"{lines[-1] if lines else 'it said nothing'} (its log: {self._log})"


def check_free(address: str) -> None:
    """A clear sentence if something listens at the address already."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise CommandError(f"PENSTOCK_ADDRESS={address} is not host:port, such as localhost:9092.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), int(port)))
        except OSError as error:
            raise CommandError(
                f"The demo cannot listen on {address}: {error.strerror or error}. If another "
                "broker runs there, stop it, or choose another address: "
                f"PENSTOCK_ADDRESS={host}:{int(port) + 1} make run"
            ) from None


def _die_with_parent() -> None:
    """Linux sends SIGTERM to the broker when we are gone, even by kill -9."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == 1:
        os._exit(1)
