"""@udf, @udaf and @udtf: what turns a Python function or class into one of the language.

The decorators change nothing: a decorated function is still called like any other, so that a user
tests it with plain pytest. They note what was declared in an attribute, which the loader reads.
"""

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from penstock.sql.functions.aggregates.aggregate import (
    AggregateFunction,
    AggregateOverload,
    SqlAggregator,
)
from penstock.sql.functions.overloads import Overload
from penstock.sql.functions.patterns import (
    AnyDecimal,
    ArrayPattern,
    Exact,
    Filled,
    Pattern,
    Signature,
)
from penstock.sql.functions.table import ScalarFunction, SqlFunction, TableFunction
from penstock.sql.functions.user.annotations import (
    AnnotationRefused,
    exact_type,
    pattern_of,
    takes_null,
    type_of_text,
)
from penstock.sql.functions.user.guarding import guarded, has_unwanted
from penstock.sql.types.kinds import DataType, parts

Written = TypeVar("Written", bound=Callable[..., Any])
MARK: Final = "__penstock_sql_function__"
_AGGREGATE_METHODS: Final = ("initialize", "add", "merge", "result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a decorator was told."""

    kind: Literal["udf", "udaf", "udtf"]
    name: str
    about: str
    returns: str | None
    author: str


def udf(
    written: Any = None, *, name: str = "", about: str = "", returns: str | None = None,
    author: str = "",
) -> Any:  # fmt: skip
    """A scalar function: one value from the values of a row."""
    return _mark("udf", written, name, about, returns, author)


def udtf(
    written: Any = None, *, name: str = "", about: str = "", returns: str | None = None,
    author: str = "",
) -> Any:  # fmt: skip
    """A table function: it returns a list or yields, and each value is a row."""
    return _mark("udtf", written, name, about, returns, author)


def udaf(
    written: Any = None, *, name: str = "", about: str = "", returns: str | None = None,
    author: str = "",
) -> Any:  # fmt: skip
    """An aggregate function: a class with initialize, add, merge, result, and undo if it can."""
    return _mark("udaf", written, name, about, returns, author)


def _mark(kind: Any, written: Any, name: str, about: str, returns: str | None, author: str) -> Any:
    def mark(target: Any) -> Any:
        told = about or (inspect.getdoc(target) or "").partition("\n")[0]
        declared = Declaration(
            kind=kind, name=(name or target.__name__).upper(), about=told, returns=returns,
            author=author,
        )  # fmt: skip
        setattr(target, MARK, declared)
        return target

    return mark if written is None else mark(written)


def function_of(target: Any, path: str, namespace: Mapping[str, Any]) -> SqlFunction:
    """The function of the language that a decorated target is; raises AnnotationRefused."""
    declared: Declaration = getattr(target, MARK)
    if declared.kind == "udaf":
        return _aggregate(target, declared, path, namespace)
    hints = _hints(target, namespace)
    parameters = inspect.signature(target).parameters.values()
    shape = _signature(parameters, hints, _result(declared, hints))
    if declared.kind == "udtf" and not isinstance(shape.result, ArrayPattern):
        raise AnnotationRefused(f"{declared.name} must return a list of rows, or yield them")
    return _PLAIN_KINDS[declared.kind](
        name=declared.name, category="USER", about=declared.about, author=declared.author,
        path=path, overloads=tuple(_overloads(target, declared, parameters, hints, shape)),
    )  # fmt: skip


_PLAIN_KINDS: Final[dict[str, type[ScalarFunction] | type[TableFunction]]] = {
    "udf": ScalarFunction,
    "udtf": TableFunction,
}


def _hints(target: Any, namespace: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(target, dict(namespace), include_extras=True)
    except NameError as error:
        raise AnnotationRefused(f"an annotation is not known: {error}") from None


def _result(declared: Declaration, hints: Mapping[str, Any]) -> Pattern:
    if declared.returns is not None:
        kind = type_of_text(declared.returns)
        return ArrayPattern(Exact(kind)) if declared.kind == "udtf" else Exact(kind)
    if "return" not in hints:
        raise AnnotationRefused(f"{declared.name} does not say what it returns: annotate it")
    found = pattern_of(hints["return"])
    if isinstance(found, AnyDecimal):
        exact_type(hints["return"])
    return found


def _signature(
    parameters: Iterable[inspect.Parameter], hints: Mapping[str, Any], result: Pattern
) -> Signature:
    patterns, is_variadic = [], False
    for parameter in parameters:
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            raise AnnotationRefused(f"the parameter {parameter.name} cannot be given by position")
        if parameter.name not in hints:
            raise AnnotationRefused(f"the parameter {parameter.name} has no annotation")
        patterns.append(pattern_of(hints[parameter.name]))
        is_variadic = parameter.kind == parameter.VAR_POSITIONAL
    return Signature(tuple(patterns), result, is_variadic)


def _overloads(
    target: Any, declared: Declaration, parameters: Iterable[inspect.Parameter],
    hints: Mapping[str, Any], whole: Signature,
) -> list[Overload]:  # fmt: skip
    """One variant for all parameters, and one less for each that has a default."""
    listed = list(parameters)
    defaults = sum(one.default is not one.empty for one in listed)
    names = tuple(one.name for one in listed)
    wants_null = [takes_null(hints[name]) for name in names]
    made = []
    for left_out in range(defaults + 1):
        count = len(listed) - left_out
        shape = Signature(whole.parameters[:count], whole.result, whole.is_variadic)
        result = None if _has_blank(shape.result) else exact_of(shape.result)
        call = guarded(declared.name, target, result, wants_null, is_rows=declared.kind == "udtf")
        made.append(
            Overload(signature=shape, call=call, names=names[:count], takes_nulls=True,
                     about=declared.about)
        )  # fmt: skip
    return made


def _has_blank(pattern: Pattern) -> bool:
    try:
        return exact_of(pattern) is None
    except AnnotationRefused:
        return True


def exact_of(pattern: Pattern) -> DataType | None:
    """The type of a pattern without blanks; raises AnnotationRefused."""
    found = Filled().type_of(pattern)
    if None in parts(found):
        raise AnnotationRefused(f"{pattern} is not one type")
    return found


def _aggregate(
    target: Any, declared: Declaration, path: str, namespace: Mapping[str, Any]
) -> AggregateFunction:
    for method in _AGGREGATE_METHODS:
        if not callable(getattr(target, method, None)):
            raise AnnotationRefused(f"{declared.name} has no method {method}")
    hints = {m: _hints(getattr(target, m), namespace) for m in _AGGREGATE_METHODS}
    added = list(inspect.signature(target.add).parameters.values())[2:]
    constants = [] if target.__init__ is object.__init__ else list(
        inspect.signature(target.__init__).parameters.values())[1:]  # fmt: skip
    known = {**hints["add"], **(_hints(target.__init__, namespace) if constants else {})}
    result = _result(declared, hints["result"])
    wants_null = [takes_null(hints["add"].get(one.name)) for one in added]
    state = exact_type(hints["initialize"].get("return"))
    make = _maker(declared, target, exact_of(result), state, wants_null)
    overloads = [
        AggregateOverload(
            signature=_signature([*added, *constants[:count]], known, result), make=make,
            constants=count, names=tuple(one.name for one in [*added, *constants[:count]]),
        )
        for count in range(_required(constants), len(constants) + 1)
    ]  # fmt: skip
    return AggregateFunction(
        name=declared.name, category="USER", about=declared.about, author=declared.author,
        path=path, overloads=tuple(overloads),
    )  # fmt: skip


def _required(parameters: Sequence[inspect.Parameter]) -> int:
    return sum(one.default is one.empty for one in parameters)


def _maker(
    declared: Declaration, target: Any, result: DataType | None, state: DataType,
    wants_null: Sequence[bool],
) -> Any:  # fmt: skip
    def guard(method: Any, kind: DataType | None) -> Any:
        return guarded(declared.name, method, kind, None)

    def change(method: Any) -> Any:
        """A row with a NULL that the method does not want leaves the state as it is."""
        call = guard(method, state)
        return lambda before, *row: before if has_unwanted(row, wants_null) else call(before, *row)

    def make(_kinds: Any, constants: tuple[Any, ...]) -> SqlAggregator:
        one = target(*constants)
        undo = getattr(one, "undo", None)
        return SqlAggregator(
            type=result, state_type=state, initialize=guard(one.initialize, state),
            add=change(one.add), merge=guard(one.merge, state),
            result=guard(one.result, result), undo=None if undo is None else change(undo),
        )  # fmt: skip

    return make
