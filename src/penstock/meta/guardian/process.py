"""The guardian itself: a tiny process that outlives its broker by a moment, to end its session.

It is run as a file by an interpreter without packages, so it uses the standard library alone and
little memory. The broker tells it on standard input which session to watch; when the broker is
dead, it takes that session over and closes it, which removes the broker's ephemeral nodes within
milliseconds instead of a session timeout. When the broker released the session before, it does
nothing. That it dies itself costs nothing but that speed. Where ZooKeeper wants TLS, the broker has
told with which keys; they stay in memory.
"""

import os
import select
import socket
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # TLS is loaded when it is needed, which is hardly ever.
    import ssl

ATTEMPTS_S_MAX = 60.0  # No session waits for longer; one that is shorter bounds it further.
ANSWER_S = 0.25  # For the first answer; each further round waits twice as long.
ANSWER_S_MAX = 5.0
_CLOSE = -11

Session = tuple[int, bytes, int]  # Id, password, timeout in milliseconds.
Server = tuple[str, int]


def main(arguments: list[str]) -> int:
    """Arguments: the broker's process id, then host and port of each ZooKeeper server."""
    broker, *words = arguments
    heard = heard_from(int(broker))
    session = last_session(heard)
    if session is None:
        return 0
    servers = [(host, int(port)) for host, port in zip(words[::2], words[1::2], strict=True)]
    is_ended = end_session(session, servers, tls_context(heard))
    outcome = "ended" if is_ended else "could not end"
    print(
        f"The guardian of process {broker}, which is dead, {outcome} its ZooKeeper session "
        f"{session[0]:#x}",
        file=sys.stderr,
    )
    return 0 if is_ended else 1


def heard_from(broker: int) -> bytes:
    """Wait for the end of the broker; all that it said.

    The end shows in two ways: the pipe closes, or the process is gone. Some other process may
    have inherited the pipe, so the first alone would not do.
    """
    poller = select.poll()
    poller.register(0, select.POLLIN | select.POLLHUP)
    is_alive = _register_process(poller, broker)
    heard = b""
    while is_alive:
        ready = {fd for fd, _ in poller.poll()}
        is_alive = ready == {0}
        if 0 in ready:
            said = os.read(0, 4096)
            heard += said
            is_alive = is_alive and bool(said)
    return heard + _rest_of_input()


def last_session(heard: bytes) -> Session | None:
    """Of all that was said, the last full line counts: a session, or its release."""
    *lines, _ = heard.split(b"\n")
    words = lines[-1].split() if lines else []
    if len(words) != 4 or words[0] != b"watch":
        return None
    return int(words[1]), bytes.fromhex(words[2].decode()), int(words[3])


def tls_context(heard: bytes) -> "ssl.SSLContext | None":
    """TLS as the broker told it, in its first line; None: ZooKeeper is asked in plain text."""
    line = heard.partition(b"\n")[0]
    if not line.startswith(b"tls "):
        return None
    import json
    import ssl

    told = json.loads(line[4:])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = told["checks_host"]
    context.minimum_version = ssl.TLSVersion(told["lowest"])
    context.maximum_version = ssl.TLSVersion(told["highest"])
    if told["ciphers"]:
        context.set_ciphers(told["ciphers"])
    if told["trusted"] is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=told["trusted"])
    if told["key"] is not None:
        _show(context, told["key"].encode())
    return context


def _show(context: "ssl.SSLContext", key_and_chain: bytes) -> None:
    """Python takes keys from files alone: this one is memory, and has no name."""
    descriptor = os.memfd_create("key")
    try:
        os.write(descriptor, key_and_chain)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def end_session(
    session: Session, servers: list[Server], context: "ssl.SSLContext | None" = None
) -> bool:
    """Ask one server after the other; False: none could be asked in time."""
    give_up_s = time.monotonic() + min(session[2] / 1000, ATTEMPTS_S_MAX)
    answer_s = ANSWER_S
    while True:
        for server in servers:
            try:
                _close_at(server, session, answer_s, context)
                return True
            except (OSError, struct.error):
                continue
        if time.monotonic() >= give_up_s:
            return False
        answer_s = min(answer_s * 2, ANSWER_S_MAX)
        time.sleep(0.05)


def _register_process(poller: "select.poll", broker: int) -> bool:
    if not hasattr(os, "pidfd_open"):
        return True  # Not Linux: the pipe has to do.
    try:
        poller.register(os.pidfd_open(broker), select.POLLIN)
    except OSError:
        return False
    return os.getppid() == broker  # Another number means that it died while we started.


def _rest_of_input() -> bytes:
    os.set_blocking(0, False)
    rest = b""
    try:
        while said := os.read(0, 4096):
            rest += said
    except BlockingIOError:
        pass  # The pipe is open somewhere else, but empty.
    return rest


def _close_at(
    server: Server, session: Session, answer_s: float, context: "ssl.SSLContext | None"
) -> None:
    session_id, password, timeout_ms = session
    with _connected(server, answer_s, context) as connection:
        # Protocol 0, no transaction seen, timeout, session, password, not read-only.
        hello = struct.pack(">iqiqi", 0, 0, timeout_ms, session_id, len(password)) + password
        answer = _ask(connection, hello + b"\0")
        _, granted_ms = struct.unpack_from(">ii", answer)
        if granted_ms > 0:  # Otherwise the session is over already.
            _ask(connection, struct.pack(">ii", 1, _CLOSE))


def _connected(server: Server, answer_s: float, context: "ssl.SSLContext | None") -> socket.socket:
    plain = socket.create_connection(server, timeout=answer_s)
    if context is None:
        return plain
    try:
        return context.wrap_socket(plain, server_hostname=server[0])
    except BaseException:
        plain.close()
        raise


def _ask(connection: socket.socket, request: bytes) -> bytes:
    connection.sendall(struct.pack(">i", len(request)) + request)
    (length,) = struct.unpack(">i", _read(connection, 4))
    return _read(connection, length)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the server closed the connection")
        data += part
    return data


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
