"""The one room of compiled code: the extension of its C files, where it was built, or nothing.

Set-up builds it where there is a C compiler (`build.py`). Without it everything works as it is
written in Python, at the price that docs/adr/0035-native.md tells. Each of its functions is made
for a twin in Python, which it asks whenever something is unusual; whoever offers a function in both
ways imports `NATIVE` and says what to do without. PENSTOCK_NATIVE=0 leaves it out.
"""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, Protocol, cast

MODULE: Final = "_penstock_native"
FORM: Final = 5  # Which functions there are and what they take; codec.c says the same.


class NativeCodec(Protocol):
    """How instances of one class are read and written in one version."""

    def decoder(self, twin: Callable[..., Any], elements_max: int, /) -> Callable[..., Any]: ...

    def encoder(self, twin: Callable[..., Any], /) -> Callable[..., Any]: ...

    def part_encoder(self, twin: Callable[..., Any], /) -> Callable[..., Any]: ...


class NativeModule(Protocol):
    """What the extension offers; from `scan_keys` on for compaction (compaction.c),
    the last one for whoever reads many records (records.c)."""

    FORM: int

    def Codec(  # noqa: N802 - a class of the extension
        self, kind: type, is_flexible: bool, body: list[Any], still: list[Any], /
    ) -> NativeCodec: ...

    def header_decoder(
        self, header: type, flexible_from: tuple[int, ...], twin: Callable[..., Any], /
    ) -> Callable[..., Any]: ...

    def batch_checker(self, header: type, twin: Callable[..., Any], /) -> Callable[..., Any]: ...

    def produced_checker(self, header: type, twin: Callable[..., Any], /) -> Callable[..., Any]: ...

    def batch_builder(self, header: type, twin: Callable[..., Any], /) -> Callable[..., Any]: ...

    def scan_keys(
        self, data: bytes, record_count: int, base_offset: int, /
    ) -> tuple[list[bytes], list[int], list[int]] | None: ...

    def splice(
        self, data: bytes, kept: set[int], record_count: int, base_offset: int, /
    ) -> tuple[bytes, int, int] | None: ...

    def map_put(
        self, memory: bytearray, seed: bytes, keys: Sequence[bytes], offsets: Sequence[int], /
    ) -> list[int]: ...

    def map_newest(self, memory: bytearray, seed: bytes, keys: Sequence[bytes], /) -> list[int]: ...

    def read_records(self, data: Any, batches: Any, table: Any, /) -> bool: ...


def load() -> NativeModule | None:
    """The extension; None: it was not built here, or it is of another form."""
    if os.environ.get("PENSTOCK_NATIVE") == "0":
        return None
    try:
        module = cast(NativeModule, import_module(MODULE))
    except ImportError:
        return None
    return module if module.FORM == FORM else None


NATIVE: Final = load()
