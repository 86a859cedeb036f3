"""Dead letters on their way from the leader of one partition to the leader of another.

A record that fails is written to the dead letter topic before the rest of its batch is appended, so
that it cannot be lost. If the append fails afterwards, the producer sends the batch again, and its
dead letters are there twice. Letters keep the number of their partition as far as there are so
many, and wait for all replicas.
"""

from collections.abc import Sequence

from penstock.broker.context import Broker
from penstock.broker.own_records import write_own_records
from penstock.config.topic import VALIDATIONS
from penstock.errors import InvalidRecord, ProtocolError, RetriableError
from penstock.records.batch import Record


async def send_letters(
    broker: Broker, topic: str, partition: int, letters: Sequence[Record]
) -> None:
    """On return all replicas have them; raises what the producer is to be told."""
    try:
        _check_not_validated(broker, topic)
        await write_own_records(broker, topic, partition, letters)
    except RetriableError:
        raise
    except ProtocolError as error:
        raise InvalidRecord(f"dead letters could not be written to {topic}: {error}") from error


def _check_not_validated(broker: Broker, topic: str) -> None:
    """A dead letter is wrong by its nature: a topic that checks would take none."""
    overrides = broker.image.config("topics", topic)
    if any(overrides.get(name, "none") not in ("none", "false") for name in VALIDATIONS):
        raise InvalidRecord(f"the dead letter topic {topic} checks schemas itself")
