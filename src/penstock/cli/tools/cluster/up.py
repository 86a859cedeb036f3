"""`penstock cluster up`: ZooKeeper and brokers as processes of this machine, until Ctrl-C.

Each is the process that an operator would start by hand, with the same files, so that one may be
killed and started again from another terminal while the rest goes on. Only a ZooKeeper that ends
for want of room is started again from here, because without it nobody could make room.
"""

import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from penstock.cli.secure_files import ADMIN
from penstock.cli.tools.cluster.files import HOST, ClusterFiles, ServerFiles
from penstock.cli.tools.cluster.zookeeper_room import give_more, open_room, take_back
from penstock.client.errors import ClientError
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.security import Security
from penstock.config.properties import read_properties
from penstock.errors import CommandError, ProtocolError
from penstock.meta.zookeeper import server as zookeeper_server
from penstock.platform.child import (
    end_of,
    end_processes,
    how_ended,
    penstock_command,
    start_process,
)
from penstock.platform.probing import is_free
from penstock.storage.directories.disk_room import DiskRoom

_START_S = 180.0  # What ends meanwhile is told at once; what is alive may be slow.
_STOP_S = 45.0
_LOOK_S = 0.1


@dataclass(slots=True, kw_only=True)
class Running:
    """One process of the cluster."""

    name: str
    files: ServerFiles
    process: "subprocess.Popen[bytes]"
    room: DiskRoom | None = None  # A ZooKeeper's; a broker looks after its own.
    is_told: bool = False  # Its end was told.


def up(cluster: ClusterFiles, stop: threading.Event) -> int:
    """Start everything, tell where it is, and stay until told to stop; 0 if all ended well."""
    _refuse_taken_ports(cluster)
    with _stop_all_at_end() as started:
        for server in cluster.zookeepers:
            started.append(_start_zookeeper(_zookeeper_name(cluster, server), server))
        context = cluster.secure.zookeeper_context() if cluster.secure else None
        for running in started:
            _wait(started, running, partial(_serves, running.files.port, context), stop)
        for server in cluster.brokers:
            started.append(_start(f"broker {server.number}", server, _broker(server)))
        _wait_for_brokers(cluster, started, stop)
        if stop.is_set():
            return 0
        for line in where_lines(cluster, started):
            print(line, flush=True)
        _watch(started, stop)
        print("Stopping.", flush=True)
    return 0


def where_lines(cluster: ClusterFiles, started: Sequence[Running]) -> Iterator[str]:
    """Where everything is, and what to do next."""
    rows = [
        (one.name, f"{HOST}:{one.files.port}", _from_here(one.files.data), one.process.pid)
        for one in started
    ]
    columns = list(zip(*rows, strict=True))
    names, places, paths = (max(len(str(cell)) for cell in column) for column in columns[:3])
    for name, place, path, pid in rows:
        yield f"{name:<{names}}  {place:<{places}}  {path:<{paths}}  process {pid}"
    first = f"localhost:{cluster.brokers[0].port}"
    copies = min(3, len(cluster.brokers))
    yield ""
    yield f"The cluster is up in {_from_here(cluster.directory)}. In another terminal:"
    to = f"--bootstrap-server {first}"
    if cluster.secure is not None:
        to += f" --command-config {_from_here(cluster.secure.client(ADMIN))}"
    yield (
        f"    {_command('kafka-topics')} --create {to} --topic my-topic "
        f"--partitions 13 --replication-factor {copies}"
    )
    yield f"    {_command('penstock')} cluster status {to}"
    yield "Ctrl-C stops it. The data stay; the same command goes on with them."


def _from_here(path: Path) -> str:
    """A path that can be pasted where the command was typed."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _command(name: str) -> str:
    """How to call a command from here: by its name if that finds ours, else by its path."""
    ours = Path(sys.executable).parent / name
    found = shutil.which(name)
    if not ours.exists() or (found is not None and Path(found).samefile(ours)):
        return name
    return _from_here(ours)


@contextmanager
def _stop_all_at_end() -> Iterator[list[Running]]:
    """Whatever was started is stopped: brokers while ZooKeeper still serves, then ZooKeeper."""
    started: list[Running] = []
    try:
        yield started
    finally:
        brokers = [running for running in started if running.name.startswith("broker")]
        _end(brokers)
        _end([running for running in started if running not in brokers])


def _end(group: Sequence[Running]) -> None:
    killed = end_processes([running.process for running in group], timeout_s=_STOP_S)
    for running in group:
        if running.process in killed:
            print(f"{running.name} did not stop within {_STOP_S:g} s and was killed.", flush=True)


def _start(name: str, files: ServerFiles, command: Sequence[str]) -> Running:
    return Running(name=name, files=files, process=start_process(command, files.log))


def _start_zookeeper(name: str, server: ServerFiles) -> Running:
    room = open_room(server)
    running = _start(name, server, _zookeeper(server, room))
    running.room = room
    return running


def _zookeeper(server: ServerFiles, room: DiskRoom) -> Sequence[str]:
    settings = read_properties(server.properties)
    is_one_of_many = any(name.startswith("server.") for name in settings)
    number = server.number if is_one_of_many else None
    prepare = partial(zookeeper_server.prepare, settings, my_id=number)
    return room.with_room(prepare).command  # It writes the file that the server reads.


def _start_again(running: Running, code: int) -> bool:
    """Start a ZooKeeper again that ended for want of room; False: this is something else."""
    room = running.room
    if room is None or not give_more(room, code):
        return False
    print(
        f"{running.name} {how_ended(code)}, for the disk under {room.path} is full. It starts "
        f"again with room that was kept for it, of which {room.reserve_bytes} bytes are left. Make "
        "room: delete topics or records, lower retention, or enlarge the disk.",
        flush=True,
    )
    running.process = start_process(_zookeeper(running.files, room), running.files.log)
    return True


def _broker(server: ServerFiles) -> Sequence[str]:
    # The command line names the file: `kafka-server-stop` and `pgrep -f` find the broker by it.
    return penstock_command("server", str(server.properties))


def _zookeeper_name(cluster: ClusterFiles, server: ServerFiles) -> str:
    return "ZooKeeper" if len(cluster.zookeepers) == 1 else f"ZooKeeper {server.number}"


def _serves(port: int, context: ssl.SSLContext | None) -> bool:
    """Whether a ZooKeeper answers there, alone or in its ensemble."""
    try:
        with _connected(port, context) as connection:
            connection.sendall(b"srvr")
            answer = b""
            while chunk := connection.recv(4096):
                answer += chunk
    except OSError:
        return False
    return b"Mode: " in answer


def _connected(port: int, context: ssl.SSLContext | None) -> socket.socket:
    plain = socket.create_connection((HOST, port), timeout=2)
    return plain if context is None else context.wrap_socket(plain, server_hostname=HOST)


def _wait_for_brokers(
    cluster: ClusterFiles, started: Sequence[Running], stop: threading.Event
) -> None:
    """Until the brokers know of each other."""
    security = cluster.secure.admin_security() if cluster.secure else None
    for running in started:
        if running.files in cluster.brokers:
            is_ready = partial(_knows_all, running.files.port, cluster, security)
            _wait(started, running, is_ready, stop)


def _knows_all(port: int, cluster: ClusterFiles, security: Security | None) -> bool:
    try:
        with ClusterClient(f"{HOST}:{port}", api_timeout_ms=2000, security=security) as client:
            client.metadata([])
            return {server.number for server in cluster.brokers} <= set(client.nodes)
    except (ClientError, ProtocolError):
        return False


def _wait(
    started: Sequence[Running],
    running: Running,
    is_ready: Callable[[], bool],
    stop: threading.Event,
) -> None:
    """Until one is ready; none of those started so far may end meanwhile."""
    give_up_s = time.monotonic() + _START_S
    while not stop.is_set() and not is_ready():
        for other in started:
            code = other.process.poll()
            if code is not None and not _start_again(other, code):
                raise CommandError(f"{other.name} {how_ended(code)}:\n{end_of(other.files.log)}")
        if time.monotonic() > give_up_s:
            raise CommandError(
                f"{running.name} was not ready within {_START_S:g} s; see {running.files.log}"
            )
        stop.wait(_LOOK_S)


def _watch(started: Sequence[Running], stop: threading.Event) -> None:
    """Tell of each process that ends; go on as long as one broker runs."""
    while not stop.is_set():
        for running in started:
            code = running.process.poll()
            if code is None and running.room is not None:
                take_back(running.room)
            if code is None or running.is_told or _start_again(running, code):
                continue
            running.is_told = True
            print(_ended_text(running, code), flush=True)
        if all(r.process.poll() is not None for r in started if r.name.startswith("broker")):
            raise CommandError("No broker of this cluster runs any more.")
        stop.wait(_LOOK_S)


def _ended_text(running: Running, code: int) -> str:
    again = "kafka-server-start" if running.name.startswith("broker") else "zookeeper-server-start"
    return (
        f"{running.name} {how_ended(code)}; {running.files.log} tells more. Start it again with\n"
        f"    {again} {running.files.properties}"
    )


def _refuse_taken_ports(cluster: ClusterFiles) -> None:
    for server in (*cluster.zookeepers, *cluster.brokers):
        if not is_free(HOST, server.port):
            raise CommandError(
                f"Port {server.port} is taken, perhaps by a cluster that still runs. "
                f"{server.properties} says to listen there."
            )
