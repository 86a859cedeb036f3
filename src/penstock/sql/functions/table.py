"""All functions by name, in upper case. A table is a value: to add functions makes another."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from penstock.sql.functions.aggregates.aggregate import AggregateFunction
from penstock.sql.functions.overloads import FunctionRefused, Overload


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarFunction:
    """One value from the values of one row."""

    name: str
    category: str
    about: str
    overloads: tuple[Overload, ...]
    author: str = "Penstock"
    path: str = "internal"  # Where it was read from.


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFunction:
    """Any number of rows from one row. A variant's result is the ARRAY of the rows' values."""

    name: str
    category: str
    about: str
    overloads: tuple[Overload, ...]
    author: str = "Penstock"
    path: str = "internal"


SqlFunction: TypeAlias = ScalarFunction | AggregateFunction | TableFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What some functions ask of the world: the clock and chance come in from outside."""

    now_ms: Callable[[], int]
    random: Callable[[], float]  # From 0 to 1, without 1.
    random_bytes: Callable[[int], bytes]


class FunctionTable:
    """Functions by name; scalar, aggregate and table functions may share one (GENERATE_SERIES)."""

    def __init__(self, functions: Iterable[SqlFunction]) -> None:
        kinds: dict[type, dict[str, SqlFunction]] = {}
        for function in functions:
            kinds.setdefault(type(function), {})[function.name.upper()] = function
        self._kinds: Final = kinds

    def with_functions(self, functions: Iterable[SqlFunction]) -> "FunctionTable":
        """A table that has these too; one of the same kind and name is replaced."""
        return FunctionTable([*self.all(), *functions])

    def all(self) -> list[SqlFunction]:
        """Every function, by name: what SHOW FUNCTIONS lists."""
        listed = [function for kind in self._kinds.values() for function in kind.values()]
        return sorted(listed, key=lambda function: function.name)

    def of_name(self, name: str) -> list[SqlFunction]:
        """What DESCRIBE FUNCTION describes; raises FunctionRefused."""
        found = [kind[name.upper()] for kind in self._kinds.values() if name.upper() in kind]
        if not found:
            raise FunctionRefused(f"Can't find any functions with the name '{name}'")
        return found

    def scalar(self, name: str) -> ScalarFunction:
        """Raises FunctionRefused, as the next two do."""
        found = self._scalars.get(name.upper())
        if isinstance(found, ScalarFunction):
            return found
        self._refuse(name)
        raise FunctionRefused(f"{name} cannot be used here: it is not a scalar function")

    def aggregate(self, name: str) -> AggregateFunction:
        """The aggregate function of a name."""
        found = self._kinds.get(AggregateFunction, {}).get(name.upper())
        if isinstance(found, AggregateFunction):
            return found
        self._refuse(name)
        raise FunctionRefused(f"{name} is not an aggregate function")

    def table(self, name: str) -> TableFunction:
        """The table function of a name."""
        found = self._kinds.get(TableFunction, {}).get(name.upper())
        if isinstance(found, TableFunction):
            return found
        self._refuse(name)
        raise FunctionRefused(f"{name} is not a table function")

    def is_aggregate(self, name: str) -> bool:
        return name.upper() in self._kinds.get(AggregateFunction, {})

    def is_table(self, name: str) -> bool:
        """Whether the name is a table function and nothing else."""
        return (
            name.upper() in self._kinds.get(TableFunction, {}) and name.upper() not in self._scalars
        )

    @property
    def _scalars(self) -> Mapping[str, SqlFunction]:
        return MappingProxyType(self._kinds.get(ScalarFunction, {}))

    def _refuse(self, name: str) -> None:
        self.of_name(name)
