"""Topics for tests of the Spark source, made and filled over the wire."""

from collections.abc import Iterable, Sequence
from typing import Any

from tests.support.wire import RawConnection

from penstock.records.batch import Record, build_batch
from penstock.records.compression import Codec

FIRST_MS = 1_700_000_000_000


class Topic:
    """One topic on a test's broker."""

    def __init__(self, port: int, name: str, partitions: int = 1, **configs: str) -> None:
        self.port = port
        self.name = name
        with RawConnection(port) as connection:
            code = connection.create_topic(name, partitions=partitions, configs=configs)
            assert code == 0, f"CreateTopics answered error {code}"

    def delete(self) -> None:
        with RawConnection(self.port) as connection:
            assert connection.delete_topic(self.name) == 0

    def put(
        self,
        values: Iterable[bytes | None],
        *,
        partition: int = 0,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        first_ms: int = FIRST_MS,
        codec: Codec = Codec.NONE,
        **batch: Any,
    ) -> int:
        """Append one batch, a millisecond between records; its first offset."""
        records = [
            Record(at, first_ms + at, key, value, tuple(headers)) for at, value in enumerate(values)
        ]
        data = bytes(build_batch(records, codec=codec, **batch))
        with RawConnection(self.port) as connection:
            return connection.produce_one(self.name, data, partition=partition)
