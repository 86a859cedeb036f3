"""What passes on the loopback, as somebody on the way would see it: a raw socket and a filter.

The kernel hands over packets of the given TCP ports alone, so that others' traffic costs nothing.
"""

import ctypes
import socket
import struct
import threading
from collections.abc import Collection
from types import TracebackType
from typing import Self

import pytest

_EVERY_PROTOCOL = 3
_ATTACH_FILTER = 26  # SO_ATTACH_FILTER
_ROOM = 33  # SO_RCVBUFFORCE: more than a busy machine needs, or packets would be lost.
_STATISTICS = (263, 6)  # SOL_PACKET, PACKET_STATISTICS
_ROOM_BYTES = 64 << 20
_PACKET_BYTES_MAX = 1 << 18
_LOAD_HALF, _JUMP_IF_EQUAL, _RETURN = 0x28, 0x15, 0x06
_SOURCE_AT, _TARGET_AT = 34, 36  # Behind the headers of Ethernet and of IP, which has no options.


class PacketCapture:
    """All packets to and from some ports while it is open; skips the test without the rights."""

    def __init__(self, ports: Collection[int]) -> None:
        try:
            self._socket = socket.socket(
                socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERY_PROTOCOL)
            )
            self._socket.setsockopt(socket.SOL_SOCKET, _ROOM, _ROOM_BYTES)
        except (PermissionError, AttributeError) as error:
            pytest.skip(f"packets can be captured by root on Linux alone: {error}")
        self._ports = frozenset(ports)
        self._thread = threading.Thread(target=self._listen, name="packets")
        self._is_over = threading.Event()
        self.packets: list[bytes] = []

    def __enter__(self) -> Self:
        program = port_filter(self._ports)
        kept = ctypes.create_string_buffer(program)
        pointer = struct.pack("HL", len(program) // 8, ctypes.addressof(kept))
        self._socket.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, pointer)
        self._socket.bind(("lo", 0))
        self._socket.settimeout(0.1)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while True:
            try:
                packet = self._socket.recv(_PACKET_BYTES_MAX)
            except TimeoutError:
                if self._is_over.is_set():
                    return  # Nothing was left to be read.
                continue
            if self._ports & set(ports_of(packet)):  # Some came before there was a filter.
                self.packets.append(packet)

    def has(self, text: str) -> bool:
        return any(text.encode() in packet for packet in tuple(self.packets))

    def seen_ports(self) -> set[int]:
        """The ports that something was said at."""
        return {port for packet in tuple(self.packets) for port in ports_of(packet)} & self._ports

    def lost(self) -> int:
        """How many packets there was no room for, since it was last asked."""
        _, lost = struct.unpack("II", self._socket.getsockopt(*_STATISTICS, 8))
        return int(lost)


def port_filter(ports: Collection[int]) -> bytes:
    """A program of the kernel's packet filter: source or target is one of the ports."""
    wanted = sorted(ports)
    steps = [(_LOAD_HALF, 0, _SOURCE_AT), *((_JUMP_IF_EQUAL, 1, port) for port in wanted)]
    steps += [(_LOAD_HALF, 0, _TARGET_AT), *((_JUMP_IF_EQUAL, 1, port) for port in wanted)]
    taken_at = len(steps) + 1
    program = b""
    for at, (code, jumps, value) in enumerate(steps):
        program += struct.pack("HBBI", code, (taken_at - at - 1) * jumps, 0, value)
    return (
        program
        + struct.pack("HBBI", _RETURN, 0, 0, 0)
        + struct.pack("HBBI", _RETURN, 0, 0, _PACKET_BYTES_MAX)
    )


def ports_of(packet: bytes) -> tuple[int, int]:
    """Source and target; of what is no TCP, numbers that mean nothing."""
    if len(packet) < _TARGET_AT + 2:
        return (0, 0)
    source, target = struct.unpack_from(">HH", packet, _SOURCE_AT)
    return int(source), int(target)
