"""The broker's side of its guardian: start it, tell it the session, release it at the end.

Without a guardian the ephemeral nodes of a broker killed with -9 stay until its session expires.
The secret of the session goes down a pipe that no other program inherits, never to a disk or a
command line. What the guardian does is process.py.
"""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

from penstock.meta.zookeeper.address import ZkAddress, parse_address
from penstock.security.tls.contexts import TlsSettings

_log = logging.getLogger("penstock.meta.guardian")
_PROGRAM = Path(__file__).with_name("process.py")


def spawn_guardian(connect: str, tls: TlsSettings | None = None) -> "Guardian":
    """A guardian for this process, which has no session to watch yet."""
    return Guardian(parse_address(connect), tls)


class Guardian:
    """A process beside ours. That it dies is harmless: the next session gets another."""

    def __init__(self, address: ZkAddress, tls: TlsSettings | None = None) -> None:
        self._address = address
        self._tls = None if tls is None else json.dumps(tls.portable())
        self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def watch(self, session_id: int, password: bytes, session_timeout_ms: int) -> None:
        """From now on, this is the session to end when this process dies."""
        if self._process.poll() is not None:
            os.close(self._pipe)
            self._start()
        self._say(f"watch {session_id} {password.hex()} {session_timeout_ms}")

    def release(self) -> None:
        """The session is closed, or about to be: there is nothing to end any more."""
        self._say("release")

    def close(self) -> None:
        """Release the session and let the guardian end, which takes a moment."""
        self.release()
        os.close(self._pipe)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        hears, self._pipe = os.pipe()  # Neither end is inherited, except as standard input here.
        servers = [str(word) for server in self._address.servers for word in server]
        try:
            self._process = subprocess.Popen(
                # Isolated and without site packages: it starts in milliseconds and stays small.
                [sys.executable, "-I", "-S", str(_PROGRAM), str(os.getpid()), *servers],
                stdin=hears,
                stdout=subprocess.DEVNULL,
                cwd="/",  # It must not keep a file system in use.
                start_new_session=True,  # A Ctrl-C, or a signal to our group, is not for it.
            )
        finally:
            os.close(hears)
        if self._tls is not None:
            self._say(f"tls {self._tls}")

    def _say(self, line: str) -> None:
        rest = f"{line}\n".encode()
        try:
            while rest:
                rest = rest[os.write(self._pipe, rest) :]
        except BrokenPipeError:
            _log.warning("The guardian (process %d) is gone; sessions end by timeout", self.pid)
