"""What is asked of a PostgreSQL server beside its stream: tables, types, publications, slots."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from penstock.connect.connectors.postgres.column_types import PgType
from penstock.connect.connectors.postgres.pgoutput import lsn_of
from penstock.connect.connectors.postgres.settings import CaptureSettings, PublicationMode
from penstock.connect.connectors.postgres.shapes import CatalogColumn, CatalogTable
from penstock.connect.errors.kinds import ConnectError

PgConnection = psycopg.Connection[tuple[Any, ...]]

_TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_t%%'
ORDER BY 1, 2"""
_COLUMNS = """
SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull,
    COALESCE(array_position(i.indkey::int2[], a.attnum), -1), c.relreplident::text
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped
AND a.attgenerated = '' ORDER BY a.attnum"""
_TYPE = """
SELECT t.typname, t.typelem, t.typbasetype, t.typtypmod, t.typcategory::text,
    ARRAY(SELECT enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY enumsortorder)
FROM pg_type t WHERE t.oid = %s"""
_SLOT = """
SELECT plugin, database, active, confirmed_flush_lsn::text, wal_status
FROM pg_replication_slots WHERE slot_name = %s"""
_PARTITIONED = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'p' AND NOT c.relispartition"""
_BY_ROOT = "publish_via_partition_root = true"
_PUBLISHED = "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotState:
    """A replication slot."""

    plugin: str
    database: str
    is_active: bool
    confirmed_lsn: int
    is_lost: bool  # The server has removed what the slot had yet to give.


class PgServer:
    """One connection for questions; each answer is the state of now."""

    def __init__(self, settings: CaptureSettings) -> None:
        self._settings = settings
        self._types: dict[int, PgType] = {}
        self.connection: PgConnection = psycopg.connect(**settings.connection(), autocommit=True)

    def close(self) -> None:
        """Hang up."""
        self.connection.close()

    def ask(self, question: Any, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of an answer."""
        return self.connection.execute(question, values).fetchall()

    def tables(self) -> list[tuple[str, str]]:
        """Schema and name of all tables that can be captured and are chosen, in order."""
        return [one for one in self.ask(_TABLES) if self._settings.choice.has_table(*one)]

    def table(self, schema: str, name: str) -> CatalogTable:
        """The shape of a table; without columns, if it is gone."""
        rows = self.ask(_COLUMNS, schema, name)
        key = sorted((row[4], row[0]) for row in rows if row[4] >= 0)  # Counted from 0.
        return CatalogTable(
            columns=tuple(
                CatalogColumn(name=row[0], type_oid=row[1], modifier=row[2], not_null=row[3])
                for row in rows
            ),
            key=tuple(name for _, name in key),
            identity=rows[0][5] if rows else "d",
        )

    def type(self, oid: int) -> PgType:
        """A type with what it is made of; types never change, so it is asked once."""
        if oid not in self._types:
            self._types[oid] = self._type(oid)
        return self._types[oid]

    def slot(self) -> SlotState | None:
        """The slot; None: there is none."""
        rows = self.ask(_SLOT, self._settings.slot)
        if not rows:
            return None
        plugin, database, active, confirmed, status = rows[0]
        return SlotState(
            plugin=plugin,
            database=database,
            is_active=active,
            confirmed_lsn=lsn_of(confirmed or "0/0"),
            is_lost=status == "lost",
        )

    def create_slot(self) -> int:
        """The slot is made; where its changes begin."""
        question = "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')"
        return lsn_of(self.ask(question, self._settings.slot)[0][0])

    def drop_slot(self) -> None:
        """Give the slot up."""
        self.ask("SELECT pg_drop_replication_slot(%s)", self._settings.slot)

    def wal_lsn(self) -> int:
        """Where the log ends now."""
        return lsn_of(self.ask("SELECT pg_current_wal_insert_lsn()::text")[0][0])

    def ensure_publication(self, tables: Iterable[tuple[str, str]]) -> None:
        """Make the publication, or set its tables, as the mode says; ConnectError if it may not."""
        name, mode, tables = (
            self._settings.publication,
            self._settings.publication_mode,
            list(tables),
        )
        found = self.ask("SELECT pubviaroot FROM pg_publication WHERE pubname = %s", name)
        is_there = bool(found)
        if is_there and not found[0][0]:
            self._refuse_partitioned(tables)
        if mode is PublicationMode.FILTERED:
            self._publish_filtered(tables, is_there=is_there)
        elif not is_there and mode is PublicationMode.DISABLED:
            raise ConnectError(
                f"The publication {name} does not exist, and publication.autocreate.mode=disabled."
                f" Make it: CREATE PUBLICATION {name} FOR TABLE ...;"
            )
        elif not is_there:
            every = " FOR ALL TABLES" if mode is PublicationMode.ALL_TABLES else ""
            words = sql.SQL(f"CREATE PUBLICATION {{}}{every} WITH ({_BY_ROOT})")
            self.connection.execute(words.format(sql.Identifier(name)))

    def _refuse_partitioned(self, tables: list[tuple[str, str]]) -> None:
        """Changes would come under the names of partitions, which nobody has chosen."""
        hidden = set(self.ask(_PARTITIONED)) & set(tables)
        if hidden:
            name = self._settings.publication
            raise ConnectError(
                f"{'.'.join(min(hidden))} is partitioned, and the publication {name} tells changes"
                f" of its partitions by their own names. Run: ALTER PUBLICATION {name} SET"
                f" ({_BY_ROOT});"
            )

    def _publish_filtered(self, tables: list[tuple[str, str]], *, is_there: bool) -> None:
        name = self._settings.publication
        if not tables:
            raise ConnectError(
                "No table is chosen, so that a filtered publication would have none."
            )
        if is_there and set(self.ask(_PUBLISHED, name)) == set(tables):
            return
        listed = sql.SQL(", ").join(sql.Identifier(*one) for one in tables)
        made = sql.SQL(f"CREATE PUBLICATION {{}} FOR TABLE {{}} WITH ({_BY_ROOT})")
        words = sql.SQL("ALTER PUBLICATION {} SET TABLE {}") if is_there else made
        self.connection.execute(words.format(sql.Identifier(name), listed))

    def _type(self, oid: int) -> PgType:
        rows = self.ask(_TYPE, oid)
        if not rows:
            return PgType(oid=oid, name="unknown")
        name, element, origin, modifier, category, labels = rows[0]
        return PgType(
            oid=oid,
            name=name,
            element=self.type(element) if category == "A" and element else None,
            origin=self.type(origin) if origin else None,
            modifier=modifier,
            labels=tuple(labels),
        )
