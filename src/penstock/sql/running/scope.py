"""What holds for the statements of one request: properties and variables, as SET and DEFINE change.

Nothing of it outlives the request: a client that goes on sends them again, as ksqlDB's do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.sql.catalog.catalog import Catalog
from penstock.sql.language.statements import SetProperty, SetVariable


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestScope:
    """Properties by name, variables by name."""

    properties: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)

    def after(self, statement: SetProperty | SetVariable) -> "RequestScope":
        """The scope once a statement has acted."""
        if isinstance(statement, SetVariable):
            return replace(self, variables=_changed(self.variables, statement))
        return replace(self, properties=_changed(self.properties, statement))

    def over(self, catalog: Catalog) -> Catalog:
        """The catalog as the statements of this request see it."""
        return replace(
            catalog,
            properties={**catalog.properties, **self.properties},
            variables=self.variables,
        )


def _changed(entries: Mapping[str, str], statement: SetProperty | SetVariable) -> Mapping[str, str]:
    kept = {name: value for name, value in entries.items() if name != statement.name}
    return kept if statement.value is None else {**kept, statement.name: statement.value}
