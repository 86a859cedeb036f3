"""The snapshot of a table: its items, page by page, behind the one that an offset names.

A scan goes through a table in an order of its own that does not change, so it can be left behind
any item and taken up there. The last item of a page is held back until the next page is seen:
only so the record that ends the snapshot can say that it does.
"""

import logging
from dataclasses import replace

from penstock.connect.connectors.changes.settings import FailureMode
from penstock.connect.connectors.dynamodb.events import EventMaker, key_of_text, key_text
from penstock.connect.connectors.dynamodb.items import Item
from penstock.connect.connectors.dynamodb.positions import (
    SnapshotState,
    TableMark,
    table_partition,
)
from penstock.connect.connectors.dynamodb.server import DynamoServer, TableFacts
from penstock.connect.connectors.dynamodb.settings import DynamoSettings
from penstock.connect.errors.kinds import DataError
from penstock.connect.records import SourceRecord

log = logging.getLogger("penstock.connect.dynamodb")


class ItemScan:
    """One snapshot; `mark` says how far it is."""

    def __init__(
        self, settings: DynamoSettings, server: DynamoServer, facts: TableFacts, mark: TableMark
    ) -> None:
        self.mark = mark
        self._settings, self._server, self._facts = settings, server, facts
        self._maker = EventMaker(settings, facts)
        self._after: Item | None = key_of_text(mark.key) if mark.key else None
        self._held: list[Item] = []

    @property
    def is_done(self) -> bool:
        """Whether all items were read."""
        return self.mark.snapshot is SnapshotState.DONE

    def step(self) -> list[SourceRecord]:
        """The records of the next page; an error leaves everything as it was."""
        count = self._settings.given["snapshot.fetch.size"]
        page = self._server.scan(self._facts.name, count, self._after)
        items = [*self._held, *page.items]
        is_end = page.next_key is None
        sent = items if is_end else items[:-1]
        records = self._records(sent, is_end=is_end)
        if records is None:
            return self._records_before_trouble(sent)
        self._held, self._after = items[len(sent) :], page.next_key
        if is_end:
            self.mark = replace(self.mark, snapshot=SnapshotState.DONE, key="")
        return records

    def _records(self, items: list[Item], *, is_end: bool) -> list[SourceRecord] | None:
        """None: one that is not the first cannot be read."""
        found: list[SourceRecord] = []
        for at, item in enumerate(items):
            is_last = is_end and at == len(items) - 1
            try:
                found.append(self._record(item, is_last=is_last))
            except DataError as error:
                if self._settings.failures is FailureMode.FAIL:
                    if found:
                        return None
                    where = key_text(self._facts, item)
                    raise DataError(f"table {self._facts.name}, item {where}: {error}") from error
                if self._settings.failures is FailureMode.WARN:
                    log.warning("An item of %s is left out: %s", self._facts.name, error)
        return found

    def _records_before_trouble(self, items: list[Item]) -> list[SourceRecord]:
        """All that can be read; the next step begins with the one that cannot, and raises."""
        found: list[SourceRecord] = []
        for item in items:
            try:
                found.append(self._record(item, is_last=False))
            except DataError:
                break
            self._after = {name: item[name] for name, _ in self._facts.key}
        self._held = []
        return found

    def _record(self, item: Item, *, is_last: bool) -> SourceRecord:
        state = SnapshotState.DONE if is_last else SnapshotState.RUNNING
        key = "" if is_last else key_text(self._facts, item)
        mark = replace(self.mark, snapshot=state, key=key)
        draft = self._maker.read_draft(item, at_ms=self.mark.since_ms, is_last=is_last)
        return draft.placed(table_partition(self._facts.name), mark.offset())
