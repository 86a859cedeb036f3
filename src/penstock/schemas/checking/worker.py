"""The decoding process: takes batches from its input, says what is wrong with their records.

It is beside the broker and not in it because decoding takes ten microseconds for a record, and
because the bytes are anybody's: what they make a library do may take for ever, take all memory or
end the process. Time and memory are bounded by the kernel here, and the broker begins another one.
"""

import json
import resource
import signal
import sys
import time
from typing import Any, BinaryIO, Final

from penstock.errors import CorruptRecord
from penstock.records.batch import read_records
from penstock.records.schema_check import RecordFlaw
from penstock.schemas.checking.decoders import SchemaDecoders
from penstock.schemas.checking.frames import (
    SIZE,
    away_answer,
    corrupt_answer,
    flaws_answer,
    message,
    read_task,
)
from penstock.schemas.errors import FormatError
from penstock.schemas.lookup import StoredSchema
from penstock.schemas.registry_client import RegistryClient, RegistryUnreachable

MEMORY_BYTES_MAX: Final = 1 << 30
_AWAY_S: Final = 1.0  # So long a registry that has not answered is not asked again.
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


class PatientLookup:
    """A registry that is not asked again at once when it has just not answered."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._away: tuple[RegistryUnreachable, float] | None = None

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema of this id."""
        if self._away is not None and time.monotonic() < self._away[1]:
            raise RegistryUnreachable(str(self._away[0]))
        try:
            return self._client.by_id(schema_id)
        except RegistryUnreachable as error:
            self._away = error, time.monotonic() + _AWAY_S
            raise


def flaws_of(decoders: SchemaDecoders, body: bytes) -> list[RecordFlaw]:
    """What is wrong with the records of a task; RegistryUnreachable if nobody can tell."""
    sides, skipped, batch = read_task(body)
    flaws: list[RecordFlaw] = []
    for index, record in enumerate(read_records(batch)):
        for is_key in sides if index not in skipped else ():
            data = record.key if is_key else record.value
            if data is None:
                continue
            try:
                decoders.decode(data)
            except (FormatError, MemoryError) as error:
                flaws.append(RecordFlaw(index, is_key, str(error), _class_name(error)))
                break
    return flaws


def _class_name(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def serve(tasks: BinaryIO, answers: BinaryIO, decoders: SchemaDecoders, limit_s: float) -> None:
    """Until the input ends."""
    while True:
        body = _read(tasks)
        if body is None:
            return
        signal.setitimer(signal.ITIMER_REAL, limit_s)  # Nobody handles it, so it ends us.
        try:
            answer = flaws_answer(flaws_of(decoders, body))
        except RegistryUnreachable as error:
            answer = away_answer(str(error))
        except CorruptRecord as error:
            answer = corrupt_answer(str(error))
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(answer)
        answers.flush()


def _read(source: BinaryIO) -> bytes | None:
    head = source.read(SIZE.size)
    if len(head) < SIZE.size:
        return None
    (size,) = SIZE.unpack(head)
    body = source.read(size)
    return body if len(body) == size else None


def _die_with_the_broker() -> None:
    """Where the kernel can: a broker that was killed must leave nothing behind."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the broker, which ends us.
    _die_with_the_broker()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    settings = _read(sys.stdin.buffer)
    if settings is None:
        return
    told: dict[str, Any] = json.loads(settings)
    client = RegistryClient(
        told["urls"], basic_auth=told["basic_auth"], timeout_s=told["registry_s"]
    )
    decoders = SchemaDecoders(PatientLookup(client))
    sys.stdout.buffer.write(message({"ready": True}))
    sys.stdout.buffer.flush()
    serve(sys.stdin.buffer, sys.stdout.buffer, decoders, told["limit_s"])


if __name__ == "__main__":
    main()
