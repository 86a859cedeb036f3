"""What an aggregate function is: a state that rows are added to, and the value it shows.

A state is a plain value of `state_type`, so whoever keeps it can write it down. `add` and the
others return a new state and leave the old one as it was. `undo` takes a row back that was added
before: it is what a table needs whose rows change, and None where ksqlDB cannot do it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.sql.functions.overloads import FunctionRefused, choose, shown_call
from penstock.sql.functions.patterns import Filled, Signature
from penstock.sql.types.kinds import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlAggregator:
    """An aggregate function for arguments of known types."""

    type: DataType | None
    state_type: DataType | None
    initialize: Callable[[], Any]
    add: Callable[..., Any]  # The state, then the values of a row.
    merge: Callable[[Any, Any], Any]  # The states of two sessions that meet.
    result: Callable[[Any], Any]
    undo: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateOverload:
    """One variant: the last `constants` of its arguments must be literals."""

    signature: Signature
    make: Callable[[tuple[DataType | None, ...], tuple[Any, ...]], SqlAggregator]
    constants: int = 0
    names: tuple[str, ...] = ()
    about: str = ""

    def shown(self, name: str) -> str:
        """`TOPK(BIGINT value, INTEGER k)`."""
        return shown_call(name, self.signature, self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateFunction:
    """One value from many rows."""

    name: str
    category: str = "AGGREGATE"
    about: str
    overloads: tuple[AggregateOverload, ...]
    author: str = "Penstock"
    path: str = "internal"

    def choose(self, arguments: Sequence[DataType | None]) -> tuple[AggregateOverload, Filled]:
        """The variant for these arguments, constants included; raises FunctionRefused."""
        return choose(self.name, self.overloads, arguments)

    def aggregator(
        self, arguments: Sequence[DataType | None], constants: Sequence[Any] = ()
    ) -> SqlAggregator:
        """The function for the types of all arguments and the values of the constant ones."""
        overload, filled = self.choose(arguments)
        if len(constants) != overload.constants:
            raise FunctionRefused(
                f"{self.name} takes {overload.constants} constants, and {len(constants)} came"
            )
        count = len(arguments) - overload.constants
        patterns = overload.signature.patterns_for(len(arguments)) or ()
        kinds = tuple(filled.type_of(pattern) for pattern in patterns[:count])
        return overload.make(kinds, tuple(constants))
