"""Questions to a door: is the port free, does somebody answer there, and is anything wrong.

A broker is asked for its versions, a service for `/-/ready` and `/-/health`. On a secured listener
only the connection is tried, because whoever asks has no credentials.
"""

import json
import socket
import ssl
from dataclasses import dataclass

from penstock.client.errors import ClientError
from penstock.client.wire.connection import BrokerConnection
from penstock.config.listeners import PLAINTEXT
from penstock.errors import CommandError, ProtocolError
from penstock.platform.settings import Door

_TIMEOUT_S = 2.0
_PORT_MAX = 65_535
_ANSWER_BYTES_MAX = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorAnswer:
    """What came back."""

    is_ready: bool
    problem: str | None = None  # None: it said nothing of the kind.


class TakenPort(CommandError):
    """One of our services cannot listen where it is to listen."""

    def __init__(self, door: Door, reason: str) -> None:
        super().__init__(
            f"The {door.service} cannot listen on {door.host or '*'}:{door.port}, {reason}: stop "
            f"what listens there, or write another address in {door.setting}."
        )
        self.door = door
        self.reason = reason


AWAY = DoorAnswer(is_ready=False)
READY = DoorAnswer(is_ready=True)


def is_free(host: str, port: int) -> bool:
    """Whether one may listen there."""
    return 0 < port <= _PORT_MAX and _obstacle(host, port) is None


def refuse_taken(door: Door) -> None:
    """TakenPort if one cannot listen at a door."""
    reason = _obstacle(door.host, door.port)
    if reason is not None:
        raise TakenPort(door, reason)


def _obstacle(host: str, port: int) -> str | None:
    """Why one cannot listen there, in the system's words; None: one can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return (error.strerror or str(error)).lower()
    return None


def ask(door: Door) -> DoorAnswer:
    """Whether a door answers, and what it says is wrong."""
    if door.protocol in ("http", "https"):
        return _ask_service(door)
    if door.protocol == PLAINTEXT:
        return _ask_broker(door)
    return _ask_port(door)


def _ask_broker(door: Door) -> DoorAnswer:
    try:
        BrokerConnection(door.reach, door.port, "penstock-up", timeout_s=_TIMEOUT_S).close()
    except (ClientError, ProtocolError):
        return AWAY
    return READY


def _ask_port(door: Door) -> DoorAnswer:
    try:
        socket.create_connection((door.reach, door.port), timeout=_TIMEOUT_S).close()
    except OSError:
        return AWAY
    return READY


def _ask_service(door: Door) -> DoorAnswer:
    """Ready or not yet, and in both cases what it says is wrong."""
    ready = _get(door, "/-/ready")
    health = None if ready is None else _get(door, "/-/health")
    if ready is None or health is None:
        return AWAY
    problem = None if health[0] == 200 else _problem(health[1])
    return DoorAnswer(is_ready=ready[0] == 200, problem=problem)


def _get(door: Door, path: str) -> tuple[int, bytes] | None:
    """Status and body. By hand, for Python's own client costs more than all the rest of us."""
    question = f"GET {path} HTTP/1.1\r\nHost: {door.reach}\r\nConnection: close\r\n\r\n"
    try:
        with _connected(door) as connection:
            connection.sendall(question.encode())
            answer = b""
            while (chunk := connection.recv(8192)) and len(answer) < _ANSWER_BYTES_MAX:
                answer += chunk
    except OSError:
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    return (int(words[1]), body) if len(words) == 3 and words[1].isdigit() else None


def _connected(door: Door) -> socket.socket:
    connection = socket.create_connection((door.reach, door.port), timeout=_TIMEOUT_S)
    if door.protocol == "http":
        return connection
    # Only whether it answers is asked, of a process that we started; nothing is told to it.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        return context.wrap_socket(connection)
    except OSError:
        connection.close()
        raise


def _problem(body: bytes) -> str | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    problems = found.get("problems") if isinstance(found, dict) else None
    if not isinstance(problems, dict) or not problems:
        return None
    return "; ".join(str(reason) for reason in problems.values())
