"""The raw limit: what the machine does with the same bytes when nobody looks at them.

`receive` takes requests of a known size off one connection, appends each to one of the files with
one write, and answers zeros of the right size. `send` answers each request with a prebuilt head and
`sendfile` of the next stretch of a file. No offsets, no checksums, no index: whatever a broker adds
is measured against this. It runs as a process of its own, one connection after the other.
"""

import argparse
import os
import socket
import struct
from pathlib import Path

from bench.load import FETCH_PARTITION, HOST, Shape, add_shape, read_exactly, shape_of


def receive(connection: socket.socket, shape: Shape, directory: Path) -> None:
    """Append each request's bytes to a file, round robin, and answer."""
    frame_bytes = len(shape.produce_frames()[0])
    body_bytes = len(shape.batch())
    answer = struct.pack(">i", shape.produce_answer_bytes() - 4).ljust(
        shape.produce_answer_bytes(), b"\0"
    )
    names = [directory / f"raw-{partition}.log" for partition in range(shape.partitions)]
    files = [os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for name in names]
    view = memoryview(bytearray(frame_bytes))
    body = view[frame_bytes - body_bytes :]
    turn = 0
    try:
        while connection.recv(1, socket.MSG_PEEK):
            read_exactly(connection, view)
            os.write(files[turn], body)
            turn = (turn + 1) % shape.partitions
            connection.send(answer)
    finally:
        for file in files:
            os.close(file)
        for name in names:
            name.unlink()


def send(connection: socket.socket, shape: Shape, file: int, partition_bytes: int) -> None:
    """Answer each fetch with the next stretch of the file for each partition."""
    batch_bytes = len(shape.batch())
    part_bytes = max(1, partition_bytes // batch_bytes) * batch_bytes
    file_bytes = os.fstat(file).st_size // part_bytes * part_bytes
    request = memoryview(bytearray(len(shape.fetch_frame([0] * shape.partitions, part_bytes))))
    lead_bytes = shape.fetch_lead_bytes()
    total = lead_bytes + shape.partitions * (FETCH_PARTITION.size + part_bytes)
    lead = struct.pack(">i", total - 4).ljust(lead_bytes, b"\0")
    at = 0
    while connection.recv(1, socket.MSG_PEEK):
        read_exactly(connection, request)
        connection.send(lead, socket.MSG_MORE)
        for partition in range(shape.partitions):
            head = FETCH_PARTITION.pack(partition, 0, 0, 0, 0, 0, -1, part_bytes)
            connection.send(head, socket.MSG_MORE)
            left = part_bytes
            while left:
                left -= os.sendfile(connection.fileno(), file, at + part_bytes - left, left)
            at = (at + part_bytes) % file_bytes


def filled(directory: Path, shape: Shape, file_bytes: int) -> int:
    """An open file of whole batches, in the page cache."""
    path = directory / "raw-read.log"
    body = shape.batch()
    with path.open("wb") as file:
        for _ in range(max(2, file_bytes // len(body))):
            file.write(body)
    return os.open(path, os.O_RDONLY)


def main() -> None:
    """Serve one connection after the other until stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=["receive", "send"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    add_shape(parser)
    parser.add_argument("--partition-bytes", type=int, default=1_048_576)
    parser.add_argument("--file-bytes", type=int, default=0)
    options = parser.parse_args()
    shape = shape_of(options)
    file = filled(options.directory, shape, options.file_bytes) if options.work == "send" else -1
    with socket.create_server((HOST, options.port)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    if options.work == "receive":
                        receive(connection, shape, options.directory)
                    else:
                        send(connection, shape, file, options.partition_bytes)
                except ConnectionError:
                    continue


if __name__ == "__main__":
    main()
