"""How the built-in functions are declared: a decorator that names the function and its types.

The same Python function may serve several variants; parameters of its own that a variant does not
have keep their defaults. Several Python functions may share a name in the language.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.sql.functions.overloads import Overload
from penstock.sql.functions.patterns import signature
from penstock.sql.functions.table import ScalarFunction, TableFunction

Declared = TypeVar("Declared", bound=Callable[..., Any])


class Catalogue:
    """The functions of one module."""

    def __init__(self, category: str) -> None:
        self._category = category
        self._abouts: dict[str, str] = {}
        self._overloads: dict[str, list[Overload]] = {}

    def scalar(
        self,
        name: str,
        *signatures: str,
        about: str = "",
        takes_nulls: bool = False,
        result_type: Callable[..., Any] | None = None,
    ) -> Callable[[Declared], Declared]:
        """Declare variants of a function; the first declaration of a name says what it is about."""

        def declare(function: Declared) -> Declared:
            self._abouts.setdefault(name, about)
            listed = self._overloads.setdefault(name, [])
            names = parameter_names(function)
            for text in signatures:
                found = signature(text)
                listed.append(
                    Overload(
                        signature=found, call=function, takes_nulls=takes_nulls,
                        names=names[: len(found.parameters)], about=about or self._abouts[name],
                        result_type=result_type,
                    )
                )  # fmt: skip
            return function

        return declare

    def copy(self) -> "Catalogue":
        """Another catalogue of the same functions, which can be added to."""
        made = Catalogue(self._category)
        made._abouts = dict(self._abouts)
        made._overloads = {name: list(known) for name, known in self._overloads.items()}
        return made

    def scalars(self) -> list[ScalarFunction]:
        """What was declared."""
        return [
            ScalarFunction(
                name=name, category=self._category, about=self._abouts[name],
                overloads=tuple(overloads),
            )
            for name, overloads in self._overloads.items()
        ]  # fmt: skip

    def tables(self) -> list[TableFunction]:
        """The same as table functions."""
        return [
            TableFunction(
                name=name, category=self._category, about=self._abouts[name],
                overloads=tuple(overloads),
            )
            for name, overloads in self._overloads.items()
        ]  # fmt: skip


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a Python function's parameters; empty where it has no Python source."""
    try:
        return tuple(inspect.signature(function).parameters)
    except ValueError:
        return ()
