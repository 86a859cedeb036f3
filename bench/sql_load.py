"""Clients of a SQL server: pull queries by key over connections that stay open.

    python -m bench.sql_load PORT CLIENTS REQUESTS KEYS

One thread and one event loop for all clients, so that the load takes little of the machine. Prints
the times of the requests in milliseconds, as JSON.
"""

import asyncio
import json
import random
import re
import sys
import time

HOST = "127.0.0.1"
LENGTH = re.compile(rb"\r\ncontent-length: ([0-9]+)\r\n", re.IGNORECASE)


def request_of(key: str) -> bytes:
    """A pull query by key."""
    body = json.dumps({"sql": f"SELECT * FROM pulled WHERE k = '{key}';"}).encode()
    head = (
        f"POST /query-stream HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def answered(reader: asyncio.StreamReader) -> bytes:
    """The body of one answer, in one piece or in chunks."""
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0], head
    if length := LENGTH.search(head):
        return await reader.readexactly(int(length[1]))
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()
    return body


async def client(port: int, requests: int, keys: int, seed: int, times_ms: list[float]) -> None:
    """One after the other."""
    chance = random.Random(seed)
    reader, writer = await asyncio.open_connection(HOST, port)
    for _ in range(requests):
        key = f"key-{chance.randrange(keys):08d}"
        begun_s = time.perf_counter()
        writer.write(request_of(key))
        body = await answered(reader)
        times_ms.append((time.perf_counter() - begun_s) * 1e3)
        assert key.encode() in body, body
    writer.close()


async def main(port: int, clients: int, requests: int, keys: int) -> None:
    """All clients together."""
    times_ms: list[float] = []
    each = max(1, requests // clients)
    await asyncio.gather(*(client(port, each, keys, one, times_ms) for one in range(clients)))
    print(json.dumps(times_ms))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:5])))
