"""PRINT as lines that come while somebody listens."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.client.operations.offsets import OffsetSpec
from penstock.sql.asking.printing import TopicPrinter
from penstock.sql.asking.questions import POLL_S, start_of
from penstock.sql.asking.records import TopicTail, edges
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.language.statements import PrintTopic
from penstock.sql.running.ports import TopicPort
from penstock.sql.running.scope import RequestScope


class OpenPrint:
    """A topic and what is printed of it; used by one thread at a time."""

    def __init__(self, tail: TopicTail, printer: TopicPrinter) -> None:
        self._tail = tail
        self._printer = printer

    def next(self) -> str | None:
        """More lines, maybe none; None: its limit is reached."""
        if self._printer.is_done:
            return None
        records = self._tail.poll(POLL_S)
        return "".join(f"{line}\n" for one in records for line in self._printer.lines(one))

    def close(self) -> None:
        """Leave the topic."""
        self._tail.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPrints:
    """Opens topics to be printed."""

    topics: TopicPort
    client: Mapping[str, str]

    def open(self, statement: PrintTopic, scope: RequestScope) -> OpenPrint:
        """A topic from where the statement says; StatementRefused if there is none."""
        if self.topics.find(statement.topic) is None:
            raise StatementRefused(
                f"Could not find topic '{statement.topic}', or the KSQL user does not have "
                "permissions to list the topic. Topic names are case-sensitive.",
                place=statement.at,
            )
        edge = OffsetSpec.EARLIEST if statement.is_from_beginning else start_of(scope.properties)
        begins = edges(self.client, statement.topic, edge)
        return OpenPrint(TopicTail(self.client, statement.topic, begins), TopicPrinter(statement))


class PrintedLines:
    """Asks a printing in threads, until the client has gone."""

    def __init__(self, work: OpenPrint) -> None:
        self._work = work
        self._has_gone = False
        self._is_closed = False

    async def next(self) -> bytes | None:
        """More lines; None: the end."""
        made = None if self._has_gone else await asyncio.to_thread(self._work.next)
        if made is None:
            await self.leave()
        return None if made is None else made.encode()

    async def leave(self) -> None:
        """Leave the topic, once."""
        if not self._is_closed:
            self._is_closed = True
            await asyncio.to_thread(self._work.close)

    def close(self) -> None:
        """The client has gone: the next look ends it."""
        self._has_gone = True
