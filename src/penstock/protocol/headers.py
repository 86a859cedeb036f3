"""The bytes before each message: which API, which version, which request an answer belongs to.

A request header is read before anything is known to be right, so it goes by key and version alone:
for a key or version that nobody here knows, the correlation id is still told, and the answer can
say what is wrong.
"""

from collections.abc import Callable
from struct import Struct as Layout
from struct import error as StructError
from typing import NamedTuple

from penstock.native import NATIVE
from penstock.protocol.apis import (
    ApiKey,
    first_flexible_versions,
    is_flexible,
    supported_versions,
)
from penstock.protocol.primitives import (
    MalformedMessage,
    decode_nullable_string,
    encode_nullable_string,
    skip_tagged_fields,
)

_FIXED = Layout(">hhi")
_CORRELATION_ID = Layout(">i")
_CLIENT_KEYS = 128  # The keys of clients lie below it; those of brokers far above.


class RequestHeader(NamedTuple):
    """What every request says before its body."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def read_request_header(data: memoryview) -> tuple[RequestHeader, int]:
    """The header of a frame, and where its body begins; to be called as decode_request_header."""
    try:
        api_key, version, correlation_id = _FIXED.unpack_from(data)
    except StructError:
        raise MalformedMessage(f"{len(data)} bytes are too few for a request header") from None
    try:
        client_id, body = decode_nullable_string(data, _FIXED.size)
        if is_flexible(api_key, version):
            body = skip_tagged_fields(data, body)
    except MalformedMessage:
        # What follows the correlation id in a version from the future is not for us to judge.
        if version in supported_versions(api_key):
            raise
        client_id, body = None, len(data)
    return RequestHeader(api_key, version, correlation_id, client_id), body


def _fastest_reader() -> Callable[[memoryview], tuple[RequestHeader, int]]:
    if NATIVE is None:
        return read_request_header
    return NATIVE.header_decoder(
        RequestHeader, first_flexible_versions(_CLIENT_KEYS), read_request_header
    )


decode_request_header = _fastest_reader()


def encode_request_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """The bytes before a request's body."""
    tags = b"\0" if is_flexible(api_key, version) else b""
    fixed = _FIXED.pack(api_key, version, correlation_id)
    return fixed + encode_nullable_string(client_id) + tags


def encode_response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """The bytes before a response's body."""
    correlation = _CORRELATION_ID.pack(correlation_id)
    return correlation + b"\0" if _has_tags(api_key, version) else correlation


def decode_response_header(data: memoryview, api_key: int, version: int) -> tuple[int, int]:
    """The correlation id of a frame, and where its body begins."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(data)
    except StructError:
        raise MalformedMessage(f"{len(data)} bytes are too few for a response header") from None
    body = _CORRELATION_ID.size
    if _has_tags(api_key, version):
        body = skip_tagged_fields(data, body)
    return correlation_id, body


def _has_tags(api_key: int, version: int) -> bool:
    # A client asks ApiVersions before it knows what the broker speaks, so the answer's header
    # never changes (KIP-511).
    return is_flexible(api_key, version) and api_key != ApiKey.API_VERSIONS
