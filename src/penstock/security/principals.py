"""Principals: the names that access rules, quotas and tokens know somebody by.

A principal has a type and a name, `User:alice`. Kafka's own types are only `User`; others come
from builders of a company's own and are compared as they are written.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from penstock.errors import ConfigError

USER = "User"
WILDCARD = "*"


class PrincipalUnreadable(ConfigError):
    """The text is not `type:name`."""

    def __init__(self, text: str) -> None:
        super().__init__(f"expected a string in format principalType:principalName but got {text}")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who somebody is; printed as Kafka prints it."""

    type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """The first colon separates; the name of a certificate may hold more of them.

        As in Kafka either side may be empty: what clients name is stored as it is, so all of it
        must be read again.
        """
        kind, colon, name = text.partition(":")
        if not colon:
            raise PrincipalUnreadable(text)
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
EVERYBODY = Principal(USER, WILDCARD)


def parse_super_users(text: str) -> frozenset[Principal]:
    """`super.users`: separated by semicolons, because the names of certificates hold commas."""
    return frozenset(Principal.parse(part.strip()) for part in text.split(";") if part.strip())


def texts(principals: Iterable[Principal]) -> frozenset[str]:
    """As rules and nodes write them."""
    return frozenset(map(str, principals))
