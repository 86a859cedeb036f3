"""Commands as records of the log: a key that says what they are about, a value in JSON.

The value has the statement as text and the settings that held for it. A record without a value
means nothing: whoever becomes the writer begins with one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.sql.commands.applying import Command
from penstock.sql.language.statements import (
    AddColumns,
    Control,
    CreateAs,
    CreateSource,
    CreateType,
    Drop,
    InsertFrom,
)

VERSION: Final = 1
_RUNNER: Final = b"runner/"
_BYTES_MAX: Final = 900_000  # A broker takes records of a megabyte.


# Not of the language: a request to end a service logs it.
TERMINATE_CLUSTER: Final = "TERMINATE CLUSTER;"


class CommandRefused(ValueError):
    """A command that cannot be logged, or a record that is none."""


class CommandFenced(CommandRefused):
    """Another server has become the writer of the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRecord:
    """One statement of the log."""

    id: str  # `stream/ORDERS/create`
    statement: str
    properties: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> tuple[bytes, bytes]:
        """Key and value; CommandRefused where it is larger than brokers take."""
        document = {
            "version": VERSION,
            "statement": self.statement,
            "streamsProperties": dict(self.properties),
        }
        value = json.dumps(document, ensure_ascii=False).encode()
        if len(value) > _BYTES_MAX:
            raise CommandRefused(f"The statement takes more than {_BYTES_MAX} bytes.")
        return self.id.encode(), value


def runner_key(server_id: str) -> bytes:
    """The key of a record, without a value, that says who runs the queries from there on."""
    return _RUNNER + server_id.encode()


def runner_of(key: bytes | None, value: bytes | None) -> str | None:
    """The server of such a record; None: it is another one."""
    if value is not None or key is None or not key.startswith(_RUNNER):
        return None
    return key.removeprefix(_RUNNER).decode("utf-8", "replace")


def read_command(key: bytes | None, value: bytes | None) -> CommandRecord | None:
    """The command of a record; None: it means nothing. CommandRefused: it cannot be read."""
    if value is None:
        return None
    try:
        document: Any = json.loads(value)
        if document["version"] > VERSION:
            raise CommandRefused(f"a command of version {document['version']} is not known here")
        properties = document.get("streamsProperties", {})
        return CommandRecord(
            id=(key or b"").decode(),
            statement=str(document["statement"]),
            properties={str(name): str(value) for name, value in properties.items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandRefused(f"a record of the command log cannot be read: {error}") from None


def terminate_record(topics: Sequence[str]) -> CommandRecord:
    """The end of a service, with patterns of the topics that go with it."""
    return CommandRecord(
        id="cluster/TerminateCluster/terminate",
        statement=TERMINATE_CLUSTER,
        properties={"deleteTopicList": json.dumps(list(topics))},
    )


def terminated_topics(command: CommandRecord) -> list[str]:
    """The patterns of such a record."""
    found: list[str] = json.loads(command.properties.get("deleteTopicList", "[]"))
    return found


def command_id(statement: Command, query: str | None = None) -> str:
    """What a command is called, as ksqlDB does: the kind, the name, what is done."""
    match statement:
        case CreateSource() | CreateAs():
            return f"{statement.kind.lower()}/{statement.name}/create"
        case CreateType():
            return f"type/{statement.name}/create"
        case Drop():
            return f"{statement.kind.lower()}/{statement.name}/drop"
        case AddColumns():
            return f"{statement.kind.lower()}/{statement.name}/alter"
        case InsertFrom():
            return f"stream/{query or statement.target}/create"
        case Control():
            return f"{statement.action.lower()}/{statement.query or 'ALL'}/execute"
    return f"cluster/{statement.name}/alter"
