"""What a topic may be called, which two names cannot live together, and what its id may be."""

import re
from collections.abc import Iterable

from penstock.errors import InvalidTopic

NAME_CHARACTERS_MAX = 249  # With "-" and the partition number it still is a directory name.
CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL_TOPICS = frozenset((CONSUMER_OFFSETS, TRANSACTION_STATE))

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)

# Ids with a meaning of their own: none, and the metadata log of other Kafkas.
_RESERVED_IDS = frozenset((bytes(16), (1).to_bytes(16, "big")))


def check_topic_name(name: str) -> None:
    """Raise InvalidTopic, in Kafka's words, for a name that cannot be a topic's."""
    if reason := _fault(name):
        raise InvalidTopic(f"Topic name is invalid: {reason}")


def _fault(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_CHARACTERS_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_CHARACTERS_MAX}"
    if not _LEGAL.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def metric_name(name: str) -> str:
    """Metrics write '.' as '_', so two topics with one metric name cannot be told apart there."""
    return name.replace(".", "_")


def check_no_collision(name: str, others: Iterable[str]) -> None:
    """Raise InvalidTopic if another topic has the same metric name."""
    if colliding := sorted(other for other in others if other != name):
        raise InvalidTopic(f"Topic '{name}' collides with existing topic: {colliding[0]}")


def topic_id_from(random_bytes: bytes) -> bytes | None:
    """A version 4 UUID of sixteen random bytes; None if these must not become one.

    An id whose text starts with '-' would look like an option on a command line.
    """
    number = int.from_bytes(random_bytes, "big")
    number = number & ~(0xF << 76) | 0x4 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    topic_id = number.to_bytes(16, "big")
    starts_with_dash = topic_id[0] >> 2 == 62
    return None if topic_id in _RESERVED_IDS or starts_with_dash else topic_id
