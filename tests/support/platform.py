"""`penstock up` as a real process, on free ports and a directory of the test's."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.processes import HOST, ROOT, ServerProcess, free_port, python
from tests.support.waiting import eventually

from penstock.config.properties import format_properties
from penstock.platform.child import is_alive
from penstock.platform.directory import PlatformDirectory
from penstock.platform.probing import is_free
from penstock.platform.state import ProcessIdentity, ProcessState, TreeState


class UpProcess(ServerProcess):
    """A tree of processes; ready when everything in it answers."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.ports = {name: free_port() for name in ("broker", "registry", "rest")}
        self.directory = PlatformDirectory(folder / "up")
        self.file = folder / "up.properties"
        self.settings = {
            "directory": str(self.directory.path),
            "listeners": f"PLAINTEXT://{HOST}:{self.ports['broker']}",
            "registry.listeners": f"http://{HOST}:{self.ports['registry']}",
            "rest.listeners": f"http://{HOST}:{self.ports['rest']}",
            "offsets.topic.num.partitions": "1",
            "processes": "1",  # Whatever the cores of this machine are.
            **(settings or {}),
        }
        self.seen: set[ProcessIdentity] = set()  # Every process that was ever in the tree.
        command = [python(), "-m", "penstock.cli.main", "up", str(self.file)]
        super().__init__(command, port=self.ports["broker"], log_path=folder / "up.out")

    def launch(self) -> None:
        """Start with the settings as they are now."""
        self.file.write_text(format_properties(self.settings))
        super().launch()

    def answers(self) -> bool:
        """Whether everything has answered."""
        assert self.process is not None
        if self.process.poll() is not None:
            code = self.process.returncode
            raise RuntimeError(f"penstock up ended with code {code}:\n{self.log_end}")
        state = self.directory.state()
        return state is not None and state.is_up and state.supervisor.pid == self.pid

    def state(self) -> TreeState:
        """What the tree says of itself, once it does."""
        state = eventually(self.directory.state, what="a state")
        assert state is not None
        self.seen |= {state.supervisor, *state.identities}
        return state

    def process_state(self, name: str) -> ProcessState:
        """One process of the tree."""
        (found,) = [one for one in self.state().processes if one.name == name]
        return found

    def url(self, service: str, path: str = "") -> str:
        return f"http://{HOST}:{self.ports[service]}{path}"

    def get(self, service: str, path: str) -> Any:
        """What a service answers."""
        return ask(self.url(service, path))[1]

    def assert_nothing_is_left(self) -> None:
        """No process that was seen, no lock, no port, and no state that says otherwise."""
        eventually(lambda: not self.directory.is_held(), what="the lock to be free")
        assert [one for one in self.seen if is_alive(one)] == []
        assert self.directory.state() is None
        assert [port for port in self.ports.values() if not is_free(HOST, port)] == []

    def kill(self) -> None:
        """SIGKILL to the supervisor; the others must end by themselves."""
        super().kill()
        eventually(lambda: not self.directory.is_held(), what="the end of the orphans")


def ask(url: str, document: object = None, **headers: str) -> tuple[int, Any]:
    """Status and document that a service answers; with a document it is a POST."""
    body = None if document is None else json.dumps(document).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        request = urllib.request.Request(url, body, named)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


def penstock(*words: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """A command of ours, run to its end."""
    return subprocess.run(
        [python(), "-m", "penstock.cli.main", *words],
        cwd=cwd or ROOT,
        capture_output=True,
        text=True,
        timeout=180,
    )


def kill_9(identity: ProcessIdentity | None) -> None:
    """End a process as the kernel does when there is no memory left."""
    assert identity is not None
    os.kill(identity.pid, signal.SIGKILL)
