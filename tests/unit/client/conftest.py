"""A broker of one's own making: each request gets the answer that the test has prepared."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from penstock.protocol.apis import ApiKey, Request, Response, request_class, supported_versions
from penstock.protocol.headers import decode_request_header, encode_response_header
from penstock.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from penstock.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker

Answer = Callable[[Request, int], Response | None]
_SIZE = struct.Struct(">i")


class StubBroker:
    """Answers on a real socket; `answers` maps an API to a function of request and version."""

    def __init__(self, node_id: int = 0) -> None:
        self.node_id = node_id
        self.answers: dict[ApiKey, Answer] = {}
        self.versions: dict[ApiKey, range] = {}  # Where they differ from all we know.
        self.asked: list[tuple[ApiKey, int]] = []
        self.raw_reply: bytes | None = None  # Sent in place of every answer.
        self.is_silent = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.answers[ApiKey.METADATA] = lambda *_: self.metadata()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def metadata(self, **more: object) -> MetadataResponse:
        """A cluster of this broker alone."""
        me = MetadataResponseBroker(node_id=self.node_id, host="127.0.0.1", port=self.port)
        return MetadataResponse(brokers=[me], controller_id=self.node_id, cluster_id="stub", **more)

    def serve(self, api: ApiKey, answer: Response) -> None:
        """Answer every request of an API with one response."""
        self.answers[api] = lambda *_: answer

    def drop_connections(self) -> None:
        """Hang up on everybody."""
        for connection in self._open:
            connection.close()
        self._open.clear()

    def close(self) -> None:
        self._listener.close()
        self.drop_connections()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            while frame := _read_frame(connection):
                reply = self._reply(frame)
                if reply is not None:
                    connection.sendall(reply)
        except OSError:
            return

    def _reply(self, frame: bytes) -> bytes | None:
        header, body = decode_request_header(memoryview(frame))
        api = ApiKey(header.api_key)
        self.asked.append((api, header.api_version))
        if self.raw_reply is not None:
            return self.raw_reply
        if self.is_silent and api is not ApiKey.API_VERSIONS:
            return None
        version = header.api_version
        if api is ApiKey.API_VERSIONS:
            answer: Response = self._api_versions(version)
            version = version if answer.error_code == 0 else 0  # type: ignore[attr-defined]
        else:
            request = request_class(api).decode(frame, version, body)
            prepared = self.answers[api](request, version)
            if prepared is None:
                return None
            answer = prepared
        head = encode_response_header(api, header.api_version, header.correlation_id)
        payload = head + answer.encode(version)
        return _SIZE.pack(len(payload)) + payload

    def _api_versions(self, version: int) -> ApiVersionsResponse:
        keys = []
        for api in {ApiKey.API_VERSIONS, *self.answers, *self.versions}:
            known = self.versions.get(api, supported_versions(api))
            if known:
                keys.append(ApiVersion(api_key=api, min_version=known[0], max_version=known[-1]))
        spoken = self.versions.get(ApiKey.API_VERSIONS, supported_versions(ApiKey.API_VERSIONS))
        return ApiVersionsResponse(error_code=0 if version in spoken else 35, api_keys=keys)


def _read_frame(connection: socket.socket) -> bytes:
    head = connection.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return b""
    return connection.recv(_SIZE.unpack(head)[0], socket.MSG_WAITALL)


@pytest.fixture
def stub() -> Iterator[StubBroker]:
    """A stub broker with id 0."""
    made = StubBroker()
    yield made
    made.close()


@pytest.fixture
def second_stub() -> Iterator[StubBroker]:
    """A stub broker with id 1."""
    made = StubBroker(node_id=1)
    yield made
    made.close()


@pytest.fixture
def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
