"""What keeps a record, or a whole batch of them, out of the table, and how that is told.

As a dead letter it has a stage and a class under Kafka Connect's names; as an error it names the
record. What becomes of the record is the user's choice (rows.py).
"""

from dataclasses import dataclass

import pyarrow as pa

from penstock.lake.errors import LakeError, Misfit, UndecodableRecord
from penstock.spark.formats.format import DecodeFailure

TASK_PUT = "TASK_PUT"  # Connect's stage of a value that was read, but does not fit its target.


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """What is wrong with one record."""

    reason: str
    error_class: str
    part: str = "value"  # Of the record, or the stage if no part of it is to blame.
    misfit: Misfit | None = None  # None: it could not even be decoded.

    def failure(self, row: int) -> DecodeFailure:
        """As dead letters tell it."""
        return DecodeFailure(row, self.error_class, self.reason)


def flaw_of(misfit: Misfit) -> Flaw:
    """Of a record that was decoded and does not fit the table."""
    kind = type(misfit)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return Flaw(reason=misfit.reason, error_class=name, part=TASK_PUT, misfit=misfit)


def error_of(batch: pa.RecordBatch, row: int, flaw: Flaw) -> LakeError:
    """The sentence that names the record."""
    topic, partition, offset = (
        batch.column(name)[row].as_py() for name in ("topic", "partition", "offset")
    )
    if flaw.misfit is not None:
        return flaw.misfit.at(f"the record at offset {offset} of {topic}-{partition}")
    return UndecodableRecord(topic, partition, offset, flaw.reason)
