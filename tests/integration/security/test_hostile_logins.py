"""Floods of strangers at a real broker: it lives, forgets them, and serves those it knows.

What the frames themselves can do is tried many more times without a process, in
tests/unit/broker/security/sasl_gate/test_hostile_frames.py.
"""

import os
import selectors
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pytest
from tests.integration.security.secured_broker import (
    SecuredBroker,
    add_scram_users,
    listener_settings,
)
from tests.support.broker import BrokerProcess
from tests.support.hostile_logins import HostileLogins
from tests.support.key_stores import make_identity
from tests.support.neighbour import neighbour_at_work
from tests.support.processes import HOST, free_port
from tests.support.waiting import eventually
from tests.support.wire import RawConnection, WireError

from penstock.client.admin import Admin

IS_LONG = os.environ.get("PENSTOCK_LONG") == "1"
CONVERSATIONS = 100_000 if IS_LONG else 4_000
LONG_S = 7200  # On a machine that has ten times the work it can do.
AT_ONCE = 100
GROWTH_BYTES_MAX = 60_000_000
# Three parts of the broker tell of strangers, each in a first burst and then some lines a second.
LINES_AT_FIRST, LINES_PER_S = 700, 3 * 10
CROWD = 1_000
CROWD_BYTES_MAX = 200_000_000  # 200 KB for each: OpenSSL holds buffers of those that have begun.
LINES_OF_A_KIND_MAX = 100  # Ten, and one a second while they go.


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    directory: Path = tmp_path_factory.mktemp("besieged")
    world = SecuredBroker.make_world(directory, make_identity("authority"))
    ports = {name: free_port() for name in world.protocols}
    settings = listener_settings(world, ports) | {
        "connection.failed.authentication.delay.ms": "0",
        "penstock.handshake.timeout.ms": "15000",
        "socket.listen.backlog.size": "500",
    }
    with BrokerProcess(directory, settings, port=ports["PLAINTEXT"]) as broker:
        broker.start()
        world.broker, world.ports = broker, ports
        add_scram_users(world.address("PLAINTEXT"), "alice")
        yield world
        assert broker.tracebacks() == {}
        broker.stop()


def throw(port: int, thrown: list[bytes]) -> None:
    """Send each on a connection of its own, all at once; every one of them must end."""
    with selectors.DefaultSelector() as selector, ExitStack() as stack:
        for data in thrown:
            peer = stack.enter_context(socket.create_connection((HOST, port), timeout=120))
            try:
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
            except OSError:
                continue  # It was closed before all was said.
            selector.register(peer, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(timeout=120)
            assert ready, f"{len(selector.get_map())} connections stay open"
            for key, _ in ready:
                if _is_over(key.fileobj):  # type: ignore[arg-type]
                    selector.unregister(key.fileobj)


def _is_over(peer: socket.socket) -> bool:
    try:
        return not peer.recv(65_536)
    except OSError:
        return True


@pytest.mark.timeout(LONG_S if IS_LONG else None)
def test_a_flood_of_strangers_disturbs_nobody(besieged: SecuredBroker) -> None:
    broker, logins = besieged.broker, HostileLogins(seed=2)
    lines, began_s = len(broker.log.splitlines()), time.monotonic()
    with neighbour_at_work(broker):
        before_bytes = broker.rss_bytes()
        for protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
            with Admin(besieged.settings(protocol, "SCRAM-SHA-512")) as inside:
                inside.list_topics()
                conversations = (logins.conversation().data for _ in range(CONVERSATIONS))
                while thrown := list(islice(conversations, AT_ONCE)):
                    throw(besieged.ports[protocol], thrown)
                inside.list_topics()
            with Admin(besieged.settings(protocol, "PLAIN")) as newcomer:
                newcomer.list_topics()
    assert broker.rss_peak_bytes() < before_bytes + GROWTH_BYTES_MAX
    written, took_s = len(broker.log.splitlines()) - lines, time.monotonic() - began_s
    assert written < LINES_AT_FIRST + LINES_PER_S * took_s


def test_who_stays_without_logging_in_takes_no_memory_and_has_to_go(
    besieged: SecuredBroker,
) -> None:
    broker = besieged.broker
    before_bytes = broker.rss_bytes()
    with ExitStack() as stack:
        waiting = []
        for _ in range(300):
            made = RawConnection(besieged.ports["SASL_PLAINTEXT"], timeout_s=120)
            waiting.append(stack.enter_context(made))
            made.send(struct.pack(">i", 524_288) + b"slowly")  # Announced, and never there.
        chatty = stack.enter_context(RawConnection(besieged.ports["SASL_PLAINTEXT"]))
        assert broker.rss_bytes() < before_bytes + GROWTH_BYTES_MAX
        with pytest.raises((OSError, WireError)):
            while True:
                assert chatty.api_versions().error_code == 0
        assert all(peer.is_closed_by_peer() for peer in waiting)
    eventually(lambda: "no authentication within 15 s" in broker.log)


def test_a_thousand_connects_at_once_are_borne_and_have_to_go(besieged: SecuredBroker) -> None:
    """A third says nothing, a third begins with TLS, a third finishes it and is nobody."""
    broker, port = besieged.broker, besieged.ports["SASL_SSL"]
    logged = len(broker.log)
    trusting = ssl.create_default_context(cafile=str(besieged.ca))
    with Admin(besieged.settings("SASL_SSL", "SCRAM-SHA-512")) as inside, ExitStack() as stack:
        inside.list_topics()
        before_bytes, before_files = broker.rss_bytes(), open_files(broker)
        peers = [stack.enter_context(connecting(port)) for _ in range(CROWD)]
        inside.list_topics()  # The newcomers are not yet all in.
        silent, begun, finishing = peers[::3], peers[1::3], peers[2::3]
        tell(begun, client_hello(trusting))
        finished = [stack.enter_context(shaken(peer, trusting)) for peer in finishing]
        inside.list_topics()
        with Admin(besieged.settings("SASL_SSL", "PLAIN")) as newcomer:
            newcomer.list_topics()
        wait_for_the_end([*silent, *begun, *finished])
        inside.list_topics()
    assert broker.rss_peak_bytes() < before_bytes + CROWD_BYTES_MAX
    eventually(lambda: open_files(broker) <= before_files)
    lines = broker.log[logged:].splitlines()
    for reason in ("no TLS handshake within 15 s", "no authentication within 15 s"):
        assert 1 <= sum(reason in line for line in lines) <= LINES_OF_A_KIND_MAX
    assert len(lines) < 3 * LINES_OF_A_KIND_MAX, lines


def open_files(broker: BrokerProcess) -> int:
    return sum(1 for _ in Path(f"/proc/{broker.pid}/fd").iterdir())


def connecting(port: int) -> socket.socket:
    """Without waiting until somebody opens."""
    peer = socket.socket()
    peer.setblocking(False)
    peer.connect_ex((HOST, port))
    return peer


def client_hello(context: ssl.SSLContext) -> bytes:
    outgoing = ssl.MemoryBIO()
    half = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=HOST)
    with pytest.raises(ssl.SSLWantReadError):
        half.do_handshake()
    return outgoing.read()


def tell(peers: list[socket.socket], data: bytes) -> None:
    for peer in peers:
        peer.settimeout(120)
        peer.sendall(data)


def shaken(peer: socket.socket, context: ssl.SSLContext) -> socket.socket:
    """After its handshake; unless the broker's patience is over, on a machine that is slow."""
    peer.settimeout(120)
    made = context.wrap_socket(peer, server_hostname=HOST, do_handshake_on_connect=False)
    try:
        made.do_handshake()
    except OSError as error:
        assert not isinstance(error, TimeoutError | ssl.SSLCertVerificationError), error
    return made


def wait_for_the_end(peers: list[socket.socket]) -> None:
    """The broker closes every one of them."""
    for peer in peers:
        peer.settimeout(120)
        try:
            while socket.socket.recv(peer, 65_536):  # Beneath TLS, whose tickets may be there.
                pass
        except ConnectionError:
            continue
