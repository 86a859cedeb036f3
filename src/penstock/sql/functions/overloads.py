"""Which variant of a function takes the arguments, and what the user is told if none does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from penstock.sql.functions.patterns import (
    ArgumentType,
    Filled,
    Signature,
    shown_arguments,
)


class FunctionRefused(ValueError):
    """There is no such function, or it does not take these arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """One variant of a scalar or table function."""

    signature: Signature
    call: Callable[..., Any]
    names: tuple[str, ...] = ()  # Of the parameters, for the documentation.
    # Without, a NULL among the arguments is NULL for the function, which is not called.
    takes_nulls: bool = False
    about: str = ""
    # Where the result's type is no pattern: from the types of the arguments.
    result_type: Callable[..., Any] | None = field(default=None, compare=False)

    def shown(self, name: str) -> str:
        """`LEN(STRING text)`."""
        return shown_call(name, self.signature, self.names)


def shown_call(name: str, of: Signature, names: Sequence[str]) -> str:
    """A call as documentation shows it: the types, and the names where there are any."""
    called = list(names) + [""] * (len(of.parameters) - len(names))
    shown = [f"{one} {called[i]}".strip() for i, one in enumerate(of.parameters)]
    if of.is_variadic:
        shown[-1] = f"{of.parameters[-1]}... {called[len(shown) - 1]}".strip()
    return f"{name}({', '.join(shown)})"


class HasSignature(Protocol):
    """What can be chosen."""

    @property
    def signature(self) -> Signature: ...

    def shown(self, name: str) -> str: ...


Chosen = TypeVar("Chosen", bound=HasSignature)


def choose(
    name: str, overloads: Sequence[Chosen], arguments: Sequence[ArgumentType]
) -> tuple[Chosen, Filled]:
    """The variant that fits best: without conversions, not repeated, with the fewest blanks."""
    fitting = [(o, f) for o in overloads if (f := o.signature.fill(arguments)) is not None]
    if not fitting:
        raise FunctionRefused(_refusal(name, overloads, arguments))
    return min(fitting, key=lambda pair: _rank(pair[0].signature, pair[1]))


def _rank(of: Signature, filled: Filled) -> tuple[int, bool, int]:
    return filled.cost, of.is_variadic, filled.blanks_used


def _refusal(
    name: str, overloads: Sequence[HasSignature], arguments: Sequence[ArgumentType]
) -> str:
    alternatives = "\n".join(overload.shown(name) for overload in overloads)
    return (
        f"Function '{name}' does not accept parameters {shown_arguments(arguments)}."
        f"\nValid alternatives are:\n{alternatives}"
        "\nFor detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
    )
