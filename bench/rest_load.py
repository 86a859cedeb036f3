"""The load that HTTP clients put on a REST proxy: `python -m bench.rest_load ...`.

Ready-made bytes over plain sockets, so that the proxy is what the clock sees: a stream of records
with its receipts, requests of version 2 on many connections, and readers of a live stream.
"""

import argparse
import base64
import http.client
import json
import resource
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from bench.load import HOST, LoadError, Measured, Stopwatch, connect

RECORDS_PER_CHUNK = 400
READY_SECONDS_MAX = 120
V2_BINARY = "application/vnd.kafka.binary.v2+json"


def streamed(port: int, topic: str, *, count: int, record_bytes: int) -> Measured:
    """One request that goes on; a receipt for every record."""
    side = {"type": "BINARY", "data": base64.b64encode(b"x" * record_bytes).decode()}
    block = json.dumps({"value": side}, separators=(",", ":")).encode() * RECORDS_PER_CHUNK
    chunk = b"%x\r\n%b\r\n" % (len(block), block)
    connection = connect(port)
    connection.sendall(_head("POST", f"{_cluster(port)}/topics/{topic}/records", chunked=True))
    told: list[int] = []
    reading = threading.Thread(target=lambda: told.append(_count_receipts(connection)))
    reading.start()
    watch = Stopwatch()
    for _ in range(count // RECORDS_PER_CHUNK):
        connection.sendall(chunk)
    connection.sendall(b"0\r\n\r\n")
    reading.join()
    sent = count // RECORDS_PER_CHUNK * RECORDS_PER_CHUNK
    if told != [sent]:
        raise LoadError(f"{sent} records, but receipts: {told}")
    return watch.measured(moved_bytes=sent * record_bytes, requests=sent)


def version_2(
    port: int, topic: str, *, count: int, record_bytes: int, connections: int, per_request: int
) -> Measured:
    """Requests of many records, each connection sending the next after an answer."""
    value = base64.b64encode(b"x" * record_bytes).decode()
    body = json.dumps({"records": [{"value": value}] * per_request}).encode()
    rounds = count // per_request // connections
    failures: list[str] = []

    def send() -> None:
        client = http.client.HTTPConnection(HOST, port, timeout=120)
        for _ in range(rounds):
            client.request("POST", f"/topics/{topic}", body, {"Content-Type": V2_BINARY})
            got = client.getresponse()
            text = got.read()
            if got.status != 200 or text.count(b'"error_code":null') != per_request:
                failures.append(text[:200].decode(errors="replace"))
                return

    threads = [threading.Thread(target=send) for _ in range(connections)]
    watch = Stopwatch()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise LoadError(failures[0])
    sent = rounds * connections * per_request
    return watch.measured(moved_bytes=sent * record_bytes, requests=sent)


def readers(port: int, topic: str, *, count: int, record_bytes: int, streams: int) -> Measured:
    """Many streams of one topic, and records one by one: each must reach all."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    path = f"{_cluster(port)}/topics/{topic}/records:stream"
    crowd = _Crowd([_open_stream(port, path) for _ in range(streams)])
    crowd.pump_until(lambda: crowd.begun == streams, "all streams")
    producing = connect(port)
    producing.sendall(_head("POST", path.removesuffix(":stream"), chunked=True))
    side = {"type": "STRING", "data": "x" * record_bytes}
    record = json.dumps({"value": side}).encode()
    watch = Stopwatch()
    for number in range(1, count + 1):
        producing.sendall(b"%x\r\n%b\r\n" % (len(record), record))
        crowd.pump_until(partial(crowd.has, number * streams), f"record {number} in all")
    return watch.measured(moved_bytes=count * streams * record_bytes, requests=count * streams)


class _Crowd:
    """Many open streams, read as they come."""

    def __init__(self, connections: list[socket.socket]) -> None:
        self.begun = 0
        self.events = 0
        self._selector = selectors.DefaultSelector()
        for connection in connections:
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ)

    def has(self, events: int) -> bool:
        return self.events == events

    def pump_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + READY_SECONDS_MAX
        while not condition():
            if time.monotonic() > deadline_s:
                raise LoadError(f"{what}: begun {self.begun}, events {self.events}")
            for key, _ in self._selector.select(1.0):
                piece = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                if not piece:
                    raise LoadError("a stream ended")
                self.begun += piece.count(b"retry: ")
                self.events += piece.count(b"\ndata: ")


def _open_stream(port: int, path: str) -> socket.socket:
    connection = connect(port)
    connection.sendall(_head("GET", path))
    return connection


def _head(method: str, path: str, *, chunked: bool = False) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"host: {HOST}"]
    if chunked:
        lines += ["content-type: application/json", "transfer-encoding: chunked"]
    return "\r\n".join([*lines, "", ""]).encode()


def _cluster(port: int) -> str:
    client = http.client.HTTPConnection(HOST, port, timeout=60)
    client.request("GET", "/v3/clusters")
    (found,) = json.loads(client.getresponse().read())["data"]
    client.close()
    return f"/v3/clusters/{found['cluster_id']}"


def _count_receipts(connection: socket.socket) -> int:
    """How many records were stored, when the answer has ended."""
    found, tail = 0, b""
    mark = b'"error_code":200'
    while not tail.endswith(b"\r\n0\r\n\r\n"):
        piece = connection.recv(1 << 18)
        if not piece:
            break
        text = tail + piece
        found += text.count(mark) - tail.count(mark)
        tail = text[-len(mark) + 1 :]
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["streamed", "version-2", "readers"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--record-bytes", type=int, default=100)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--per-request", type=int, default=100)
    parser.add_argument("--streams", type=int, default=1000)
    asked = parser.parse_args()
    amounts = {"count": asked.count, "record_bytes": asked.record_bytes}
    if asked.work == "streamed":
        found = streamed(asked.port, asked.topic, **amounts)
    elif asked.work == "version-2":
        shape = {"connections": asked.connections, "per_request": asked.per_request}
        found = version_2(asked.port, asked.topic, **amounts, **shape)
    else:
        found = readers(asked.port, asked.topic, **amounts, streams=asked.streams)
    print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
