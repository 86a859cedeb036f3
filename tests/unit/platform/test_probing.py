"""Doors that are taken, that nobody answers, and that answer with nonsense."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.support.processes import HOST, free_port

from penstock.platform.probing import AWAY, READY, DoorAnswer, TakenPort, ask, is_free, refuse_taken
from penstock.platform.settings import Door


def door(port: int, protocol: str = "http") -> Door:
    return Door(service="rest", setting="rest.listeners", protocol=protocol, host=HOST, port=port)


@contextmanager
def answering(*answers: bytes) -> Iterator[int]:
    """Somebody who answers each connection with the next of the bytes."""
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):  # Nobody may come for the rest of the answers.
                for answer in answers:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65_536)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


OK = b"HTTP/1.1 200 OK\r\n\r\n{}"
STARTING = b'HTTP/1.1 503 X\r\n\r\n{"status":"starting"}'
FAILING = b'HTTP/1.1 503 X\r\n\r\n{"status":"failing","problems":{"rest":"no brokers"}}'


def test_a_taken_port_is_refused_with_the_setting_to_change() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(TakenPort, match=f"rest cannot listen on {HOST}:{port}") as told:
            refuse_taken(door(port))
    assert "address already in use: stop" in str(told.value)
    assert "rest.listeners" in str(told.value)
    assert told.value.door.port == port


def test_a_host_that_is_not_ours_is_told_as_such() -> None:
    foreign = Door(service="rest", setting="x", protocol="http", host="192.0.2.1", port=8082)
    with pytest.raises(TakenPort, match="cannot assign requested address"):
        refuse_taken(foreign)


def test_a_free_port_is_free_and_what_is_no_port_is_not() -> None:
    assert is_free(HOST, free_port())
    assert not is_free(HOST, 0)
    assert not is_free(HOST, 70_000)


@pytest.mark.parametrize("protocol", ["http", "PLAINTEXT", "SASL_SSL"])
def test_nobody_there_is_away(protocol: str) -> None:
    assert ask(door(free_port(), protocol)) == AWAY


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ((OK, OK), READY),
        ((STARTING, OK), DoorAnswer(is_ready=False)),
        ((STARTING, FAILING), DoorAnswer(is_ready=False, problem="no brokers")),
        ((OK, FAILING), DoorAnswer(is_ready=True, problem="no brokers")),
        ((OK, b"HTTP/1.1 503 X\r\n\r\nnot json"), DoorAnswer(is_ready=True)),
        ((b"", b""), AWAY),
        ((b"SSH-2.0-x\r\n", b"SSH-2.0-x\r\n"), AWAY),
        ((b"HTTP/1.1 zero x\r\n\r\n",) * 2, AWAY),
    ],
)
def test_a_service_says_whether_it_is_ready_and_what_is_wrong(
    answers: tuple[bytes, ...], found: DoorAnswer
) -> None:
    with answering(*answers) as port:
        assert ask(door(port)) == found


def test_a_secured_listener_is_only_connected_to() -> None:
    with socket.create_server((HOST, 0)) as server:
        assert ask(door(server.getsockname()[1], "SASL_SSL")) == READY


def test_somebody_who_does_not_speak_kafka_is_no_broker() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        assert ask(door(port, "PLAINTEXT")) == AWAY
