"""A registry over a topic in memory, asked through its HTTP interface without a socket."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx

from penstock.http.service import Guard
from penstock.registry.records import NOOP, StoreRecord
from penstock.registry.service.application import application
from penstock.registry.service.forwarding import ForwardSettings, LeaderWrites
from penstock.registry.service.leadership import Leadership
from penstock.registry.service.store import SchemaStore
from penstock.registry.service.topic import BegunTerm, ReadRecord
from penstock.registry.state import RegistryState

MEDIA = "application/vnd.schemaregistry.v1+json"


class MemoryTopic:
    """A topic whose records are read when `gate` is open."""

    def __init__(self, records: Sequence[ReadRecord] = ()) -> None:
        self.records = list(records)
        self.gate = asyncio.Event()
        self.gate.set()
        self.refusals: list[Exception] = []  # What the next appends raise.
        self.terms = 0
        self.producer_id = 7
        self.retired: list[int] = []
        self._is_in_term = False
        self._grown = asyncio.Event()
        self._read = 0

    async def mark(self) -> int:
        self.put(NOOP)
        return self.records[-1].offset

    @property
    def is_in_term(self) -> bool:
        return self._is_in_term

    async def begin_term(self) -> BegunTerm:
        self.terms += 1
        self._is_in_term = True
        self.put(NOOP, self.producer_id)
        return BegunTerm(self.records[-1].offset, self.producer_id)

    async def retire(self, producer_ids: Sequence[int]) -> int:
        self.retired += producer_ids
        return await self.mark()

    async def append(self, records: Sequence[StoreRecord]) -> int:
        if self.refusals:
            raise self.refusals.pop(0)
        for record in records:
            self.put(record)
        return self.records[-len(records)].offset

    def leave_term(self) -> None:
        self._is_in_term = False

    def put(self, record: StoreRecord, producer_id: int | None = None) -> None:
        """A record of whoever."""
        offset = self.records[-1].offset + 1 if self.records else 0
        self.records.append(ReadRecord(offset, record.key, record.value, producer_id))
        self._grown.set()

    async def read(self) -> Sequence[ReadRecord]:
        await self.gate.wait()
        if self._read == len(self.records):
            await self._grown.wait()
        self._grown.clear()
        found = self.records[self._read :]
        self._read = len(self.records)
        return found


class Registry:
    """`async with Registry() as registry: await registry.get("/subjects")`."""

    def __init__(
        self,
        topic: MemoryTopic | None = None,
        *,
        timeout_s: float = 60,
        leadership: Leadership | None = None,  # None: it leads.
        guard: Guard | None = None,
    ) -> None:
        self.topic = topic or MemoryTopic()
        self.leadership = leadership or Leadership.alone()
        self._timeout_s = timeout_s
        self._guard = guard

    async def __aenter__(self) -> "Registry":
        self.store = SchemaStore(
            self.topic,
            RegistryState(),
            timeout_s=self._timeout_s,
            is_leading=self.leadership.is_leading,
        )
        self.following = asyncio.create_task(self.store.follow())
        await self.store.catch_up()
        forwards = ForwardSettings(timeout_s=self._timeout_s)
        writes = LeaderWrites(self.store, self.leadership, forwards)
        transport = httpx.ASGITransport(application(self.store, writes, self._guard))
        self.http = httpx.AsyncClient(transport=transport, base_url="http://registry")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()
        self.following.cancel()
        await asyncio.wait([self.following])
        self.store.close()

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the document of an answer."""
        content = None if body is None else json.dumps(body)
        got = await self.http.request(
            method, path, content=content, headers={"content-type": MEDIA}
        )
        assert got.headers["content-type"] == MEDIA
        return got.status_code, got.json()

    async def get(self, path: str) -> Any:
        """The document of an answer that is no error."""
        return await self._well("GET", path)

    async def post(self, path: str, body: object) -> Any:
        return await self._well("POST", path, body)

    async def put(self, path: str, body: object) -> Any:
        return await self._well("PUT", path, body)

    async def delete(self, path: str) -> Any:
        return await self._well("DELETE", path)

    async def register(self, subject: str, schema: object, **more: object) -> int:
        """Register an Avro schema; its id."""
        body = {"schema": json.dumps(schema), **more}
        made = await self.post(f"/subjects/{subject}/versions", body)
        return int(made["id"])

    async def error(self, method: str, path: str, body: object = None) -> tuple[int, int, str]:
        """Status, code and sentence of an error."""
        status, document = await self.ask(method, path, body)
        assert set(document) == {"error_code", "message"}
        return status, document["error_code"], document["message"]

    async def _well(self, method: str, path: str, body: object = None) -> Any:
        status, document = await self.ask(method, path, body)
        assert status == 200, document
        return document


def record(*fields: dict[str, object]) -> dict[str, object]:
    """An Avro record."""
    return {"type": "record", "name": "Order", "fields": list(fields)}


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": ""}
BARE = {"name": "bare", "type": "string"}  # Without a default: it cannot be added.
