"""Which column a name means: those of all sources of a query, with and without an alias."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.sql.analysis.logical import SourceRead
from penstock.sql.analysis.walking import rewritten
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.language.expressions import ColumnName
from penstock.sql.language.queries import Select
from penstock.sql.types.kinds import DataType


@dataclass(frozen=True, slots=True)
class SourceScope:
    """The sources of a query and what lies in its rows."""

    sources: tuple[SourceRead, ...]
    added: Mapping[str, DataType]  # What is no source's: the key of a join.

    @property
    def row(self) -> dict[str, DataType]:
        """All that lies in a row."""
        found = dict(self.added)
        for source in self.sources:
            found |= source.row()
        return found

    def resolved(self, expression: Any, clause: str) -> Any:
        """The expression with each column under its name in a row; StatementRefused if unknown."""

        def change(node: Any) -> Any:
            return self.column(node, clause) if isinstance(node, ColumnName) else None

        return rewritten(expression, change)

    def column(self, node: ColumnName, clause: str) -> ColumnName:
        """The one column that a name means."""
        if node.source is None and node.name in self.added:
            return ColumnName(node.name, at=node.at)
        found = [
            source.prefix + node.name
            for source in self.sources
            if node.source in (None, source.alias) and source.prefix + node.name in source.row()
        ]
        if not found:
            hint = self._hint(node)
            raise StatementRefused(f"{clause} column '{node}' cannot be resolved.{hint}",
                                   place=node.at)  # fmt: skip
        if len(found) > 1:
            raise StatementRefused(
                f"{clause} column '{node}' is ambiguous. Could be any of: {', '.join(found)}",
                place=node.at,
            )
        return ColumnName(found[0], at=node.at)

    def source_of(self, alias: str, place: Any) -> SourceRead:
        """The source of an alias."""
        for source in self.sources:
            if source.alias == alias:
                return source
        raise StatementRefused(f"'{alias}' is not a valid stream/table name or alias.", place=place)

    def owner(self, name: str) -> SourceRead | None:
        """The source whose column lies under a name in the row."""
        return next((source for source in self.sources if name in source.row()), None)

    def _hint(self, node: ColumnName) -> str:
        if node.source is not None and all(node.source != s.alias for s in self.sources):
            return f" '{node.source}' is not a valid stream/table name or alias."
        near = [
            column.name
            for source in self.sources
            for column in source.relation.columns.all
            if column.name.upper() == node.name.upper()
        ]
        return f" Did you mean `{near[0]}`? Names keep their case in back quotes." if near else ""


def scope_of(select: Select, catalog: Catalog) -> SourceScope:
    """The sources of a SELECT; each alias once."""
    named = [select.source, *(join.source for join in select.joins)]
    aliases: set[str] = set()
    sources = []
    for one in named:
        if one.alias in aliases:
            raise StatementRefused(
                f"Each side of the join must have a unique alias: '{one.alias}' stands for two.",
                place=one.at,
            )
        aliases.add(one.alias)
        relation = catalog.relation(one.name, one.at)
        prefix = f"{one.alias}." if len(named) > 1 else ""
        sources.append(SourceRead(alias=one.alias, relation=relation, prefix=prefix))
    _check_apart(sources)
    return SourceScope(tuple(sources), {})


def _check_apart(sources: Iterable[SourceRead]) -> None:
    seen: set[str] = set()
    for source in sources:
        names = set(source.row())
        if names & seen:
            raise StatementRefused(f"The columns of '{source.alias}' cannot be told from those of "
                                   "another source: choose an alias without a dot.")  # fmt: skip
        seen |= names
