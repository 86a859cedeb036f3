"""A client that takes all it can get: many connections, each with requests ahead of its answers.

A process of its own, so that its work does not slow the client it is compared with. It shows no
consideration: throttle times are not even read.
"""

import socket
import struct
import sys
import threading

from tests.support.batches import batch
from tests.support.wire import FETCH, METADATA, PRODUCE, fetch_body, produce_body, request

CONNECTIONS = 8
REQUEST_BYTES = 100_000


def requests_of(kind: str, topic: str) -> bytes:
    """What a connection sends again and again."""
    if kind == "produce":
        body = produce_body({(topic, 0): batch([bytes(REQUEST_BYTES)])})
        return request(PRODUCE, 7, body, client_id="hog")
    if kind == "fetch":
        body = fetch_body({(topic, 0): 0}, wait_ms=0, partition_bytes_max=4 * REQUEST_BYTES)
        return request(FETCH, 11, body, client_id="hog") * 4
    return request(METADATA, 1, struct.pack(">i", -1), client_id="hog") * 50


def keep_sending(connection: socket.socket, data: bytes) -> None:
    while True:
        connection.sendall(data)


def keep_reading(connection: socket.socket) -> None:
    while connection.recv(1 << 20):
        pass


def main(port: int, topic: str, kinds: list[str]) -> None:
    """Hog until killed."""
    for kind in kinds:
        data = requests_of(kind, topic)
        for _ in range(CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=keep_sending, args=(connection, data), daemon=True).start()
            threading.Thread(target=keep_reading, args=(connection,), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
