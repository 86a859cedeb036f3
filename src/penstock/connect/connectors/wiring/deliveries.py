"""Records of a source that has no offsets: the server gives a message again until it is told.

A delivery is known by its connection and a number. What came over a connection that is gone comes
again, so telling of it would tell of nothing, or of another message with the same number.
"""

from dataclasses import dataclass

from penstock.connect.records import SourceRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredRecord(SourceRecord):
    """A record with what its server must be told once it is in a topic."""

    connection: int  # Counts up with each connection that is made.
    tag: int
    qos: int = 1  # MQTT's; 0: nobody waits for word of it.
