"""Answers that end before they are whole."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.connect.connectors.hdfs.web_store import WebHdfsStore
from penstock.connect.errors.kinds import RetriableConnectError
from penstock.http.whole_answers import AnswerTooLarge, read_whole

HEAD = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def server_of(answer: bytes) -> Iterator[str]:
    """Gives each who asks these bytes, and ends the connection."""

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(60)


def read(answer: bytes, bytes_max: int = 100) -> bytes:
    with server_of(answer) as address:
        connection = http.client.HTTPConnection(address, timeout=60)
        try:
            connection.request("GET", "/")
            return read_whole(connection.getresponse(), bytes_max)
        finally:
            connection.close()


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Content-Length: 5\r\n\r\nwhole",
        HEAD + b"Connection: close\r\n\r\nwhole",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n",
    ],
)
def test_a_whole_answer_is_read(answer: bytes) -> None:
    assert read(answer) == b"whole"
    assert read(answer, bytes_max=5) == b"whole"


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Content-Length: 5\r\n\r\n",
        HEAD + b"Content-Length: 5\r\n\r\nwho",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nwho",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nwho\r\n",
    ],
)
def test_an_answer_that_was_cut_is_none(answer: bytes) -> None:
    with pytest.raises(http.client.IncompleteRead):
        read(answer)


def test_an_answer_that_is_too_large_is_none() -> None:
    with pytest.raises(AnswerTooLarge, match="more than 4 bytes"):
        read(HEAD + b"Content-Length: 5\r\n\r\nwhole", bytes_max=4)


def test_a_file_that_was_cut_is_not_taken_for_a_short_one() -> None:
    with (
        server_of(HEAD + b"Content-Length: 5\r\n\r\nwho") as address,
        pytest.raises(RetriableConnectError, match="reading a file failed"),
    ):
        WebHdfsStore(f"webhdfs://{address}/").get("a file")
