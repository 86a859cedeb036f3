"""A whole broker for each test, in this process: handlers are called as the dispatcher calls them.

Requests and responses go through their bytes on the way, so that a field a version does not have
cannot slip through in either direction.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, TypeVar

import pytest

from penstock.broker.context import Broker, RequestContext
from penstock.broker.dispatch import HANDLERS, PEER_HANDLERS, REFUSED
from penstock.broker.server import serving
from penstock.config.broker import BrokerConfig
from penstock.errors import ErrorCode, ProtocolError
from penstock.net.session import Session
from penstock.protocol.apis import ApiKey, Request, Response, response_class
from penstock.protocol.headers import RequestHeader
from penstock.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.records.batch import Record, build_batch, split_batches
from penstock.replica.partition import Partition
from penstock.storage.segments.file_slice import FileSlice

T = TypeVar("T")


class Served:
    """A running broker and an event loop to call it in."""

    def __init__(self, broker: Broker, runner: asyncio.Runner) -> None:
        self.broker = broker
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def ask(
        self,
        request: Request,
        version: int,
        *,
        listener: str = "PLAINTEXT",
        session: Session | None = None,
    ) -> Any:
        """The answer as a client of this version reads it."""
        return self.run(self.answer(request, version, listener=listener, session=session))

    async def answer(
        self,
        request: Request,
        version: int,
        *,
        listener: str = "PLAINTEXT",
        session: Session | None = None,
    ) -> Any:
        """Like `ask`, for tests that ask several things at once."""
        api_key = ApiKey(type(request).api_key)
        read = type(request).decode(bytearray(request.encode(version)), version)
        header = RequestHeader(
            api_key=api_key, api_version=version, correlation_id=1, client_id="test"
        )
        session = session or Session(listener=listener, address="127.0.0.1")
        context = RequestContext(self.broker, header, session)
        response = await _handled(_handler(api_key), read, context)
        return response_class(api_key).decode(_bytes_of(response, version), version)

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        """A topic; settings are written with underscores."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        (made,) = self.ask(CreateTopicsRequest(topics=[topic]), 7).topics
        assert made.error_code == ErrorCode.NONE, made.error_message

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.broker.partitions.leader(topic, index)

    def append(self, topic: str, *timestamps: int, index: int = 0, **batch: Any) -> None:
        """One batch with a record for each timestamp."""
        records = [
            Record(offset=at, timestamp=timestamp, key=b"k", value=b"v", headers=())
            for at, timestamp in enumerate(timestamps)
        ]
        built = memoryview(build_batch(records, **batch))
        now_ms = self.broker.now_ms()
        self.partition(topic, index).append(split_batches(built), required_acks=1, now_ms=now_ms)


async def _handled(handler: ModuleType, request: Request, context: RequestContext) -> Any:
    try:
        response = handler.handle(request, context)
        return await response if inspect.isawaitable(response) else response
    except ProtocolError as error:
        if hasattr(handler, "error_response"):
            return handler.error_response(request, error)
        response = response_class(ApiKey(context.header.api_key))()
        response.error_code = int(error.code)
        if hasattr(response, "error_message"):
            response.error_message = str(error)
        return response


def _bytes_of(response: Response, version: int) -> bytes:
    """What goes out; records that lie in a file are read from there."""
    parts = response.encode_parts(version)
    return b"".join(part.read() if isinstance(part, FileSlice) else part for part in parts)


def _handler(api_key: ApiKey) -> ModuleType:
    name = HANDLERS.get(api_key) or REFUSED.get(api_key) or PEER_HANDLERS[api_key]
    return import_module(f"penstock.broker.handlers.{name}")


@contextmanager
def _served(directory: Path, settings: Mapping[str, str]) -> Iterator[Served]:
    config = BrokerConfig(
        {
            "log.dirs": str(directory / "data"),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:0",
            "broker.id": "7",
            **settings,
        }
    )
    with asyncio.Runner() as runner:
        context = serving(config)
        broker = runner.run(context.__aenter__())
        try:
            yield Served(broker, runner)
        finally:
            runner.run(context.__aexit__(None, None, None))


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """Room for a broker's data, in memory where there is such a place: fsync is not tested here."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        yield Path(directory)


@pytest.fixture
def serve(data_dir: Path) -> Iterator[Callable[..., Served]]:
    """Start a broker with these settings, written as a mapping of Kafka's names."""
    with ExitStack() as brokers:

        def start(settings: Mapping[str, str] | None = None) -> Served:
            return brokers.enter_context(_served(data_dir, settings or {}))

        yield start


@pytest.fixture
def served(serve: Callable[..., Served]) -> Served:
    """A broker with its defaults."""
    return serve()
