"""SUM, AVG, standard deviations and correlation: states of a few numbers, all of which can undo."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from penstock.sql.functions.aggregates.aggregate import SqlAggregator
from penstock.sql.functions.aggregates.declare import aggregate, variant
from penstock.sql.types.kinds import BIGINT, DOUBLE, ArrayOf, DataType, DecimalOf, StructOf
from penstock.sql.types.numbers import fitted, wrapped


def _added(left: Any, right: Any, kind: DataType | None) -> Any:
    if isinstance(kind, DecimalOf):
        return fitted(left + right, kind)
    return left + right if kind == DOUBLE else wrapped(left + right, kind)


def _zero(kind: DataType | None) -> Any:
    if isinstance(kind, DecimalOf):
        return fitted(Decimal(0), kind)
    return 0.0 if kind == DOUBLE else 0


def _sum(kinds: Sequence[DataType | None], _constants: Any) -> SqlAggregator:
    kind = kinds[0] or BIGINT
    return SqlAggregator(
        type=kind,
        state_type=kind,
        initialize=lambda: _zero(kind),
        add=lambda state, value: state if value is None else _added(state, value, kind),
        undo=lambda state, value: state if value is None else _added(state, -value, kind),
        merge=lambda left, right: _added(left, right, kind),
        result=lambda state: state,
    )


def _sum_list(kinds: Sequence[DataType | None], _constants: Any) -> SqlAggregator:
    kind = kinds[0].item if isinstance(kinds[0], ArrayOf) else None
    one = _sum([kind], ())

    def add(state: Any, values: Sequence[Any] | None) -> Any:
        for value in values or ():
            state = one.add(state, value)
        return state

    def undo(state: Any, values: Sequence[Any] | None) -> Any:
        for value in values or ():
            state = one.add(state, None if value is None else -value)
        return state

    return SqlAggregator(
        type=one.type, state_type=one.state_type, initialize=one.initialize, add=add, undo=undo,
        merge=one.merge, result=one.result,
    )  # fmt: skip


# Moments: sums of products, from which averages and deviations follow.


def _moments(*names: str) -> StructOf:
    return StructOf((("COUNT", BIGINT), *((name, DOUBLE) for name in names)))


def _plus(left: Mapping[str, Any], right: Mapping[str, Any], sign: int = 1) -> dict[str, Any]:
    return {name: left[name] + sign * right[name] for name in left}


def _nothing(kind: StructOf) -> dict[str, Any]:
    return {name: 0 if name == "COUNT" else 0.0 for name, _ in kind.fields}


def _average(_kinds: Any, _constants: Any) -> SqlAggregator:
    kind = _moments("SUM")

    def changed(state: Any, value: float | None, sign: int) -> Any:
        return state if value is None else _plus(state, {"COUNT": 1, "SUM": value}, sign)

    return SqlAggregator(
        type=DOUBLE,
        state_type=kind,
        initialize=lambda: _nothing(kind),
        add=lambda state, value: changed(state, value, 1),
        undo=lambda state, value: changed(state, value, -1),
        merge=_plus,
        result=lambda state: state["SUM"] / state["COUNT"] if state["COUNT"] else 0.0,
    )


def _deviation(spare: int) -> Any:
    """The standard deviation; `spare` is 1 for a sample and 0 for all there is."""

    def make(_kinds: Any, _constants: Any) -> SqlAggregator:
        kind = _moments("MEAN", "SQUARES")  # The mean, and the sum of squared distances to it.
        return SqlAggregator(
            type=DOUBLE,
            state_type=kind,
            initialize=lambda: _nothing(kind),
            add=_further,
            undo=_back,
            merge=_together,
            result=lambda state: _root(state, spare),
        )

    return make


def _further(state: Mapping[str, Any], value: float | None) -> Mapping[str, Any]:
    if value is None:
        return state
    count = state["COUNT"] + 1
    mean = state["MEAN"] + (value - state["MEAN"]) / count
    squares = state["SQUARES"] + (value - state["MEAN"]) * (value - mean)
    return {"COUNT": count, "MEAN": mean, "SQUARES": squares}


def _back(state: Mapping[str, Any], value: float | None) -> Mapping[str, Any]:
    if value is None:
        return state
    count = state["COUNT"] - 1
    if count <= 0:
        return {"COUNT": 0, "MEAN": 0.0, "SQUARES": 0.0}
    mean = state["MEAN"] - (value - state["MEAN"]) / count
    squares = state["SQUARES"] - (value - mean) * (value - state["MEAN"])
    return {"COUNT": count, "MEAN": mean, "SQUARES": max(0.0, squares)}


def _together(left: Mapping[str, Any], right: Mapping[str, Any]) -> Mapping[str, Any]:
    if not left["COUNT"] or not right["COUNT"]:
        return left if left["COUNT"] else right
    count = left["COUNT"] + right["COUNT"]
    apart = right["MEAN"] - left["MEAN"]
    return {
        "COUNT": count,
        "MEAN": left["MEAN"] + apart * right["COUNT"] / count,
        "SQUARES": left["SQUARES"]
        + right["SQUARES"]
        + apart**2 * left["COUNT"] * right["COUNT"] / count,
    }


def _root(state: Mapping[str, Any], spare: int) -> float:
    degrees = state["COUNT"] - spare
    return math.sqrt(state["SQUARES"] / degrees) if degrees > 0 else 0.0


def _correlation(_kinds: Any, _constants: Any) -> SqlAggregator:
    kind = _moments("X", "Y", "XX", "YY", "XY")

    def changed(state: Any, x: float | None, y: float | None, sign: int) -> Any:
        if x is None or y is None:
            return state
        row = {"COUNT": 1, "X": x, "Y": y, "XX": x * x, "YY": y * y, "XY": x * y}
        return _plus(state, row, sign)

    return SqlAggregator(
        type=DOUBLE,
        state_type=kind,
        initialize=lambda: _nothing(kind),
        add=lambda state, x, y: changed(state, x, y, 1),
        undo=lambda state, x, y: changed(state, x, y, -1),
        merge=_plus,
        result=_pearson,
    )


def _pearson(state: Mapping[str, Any]) -> float:
    count = state["COUNT"]
    x = count * state["XX"] - state["X"] ** 2
    y = count * state["YY"] - state["Y"] ** 2
    if count < 2 or x <= 0 or y <= 0:
        return math.nan
    return float((count * state["XY"] - state["X"] * state["Y"]) / math.sqrt(x * y))


FUNCTIONS: Final = [
    aggregate(
        "SUM",
        "The sum of the values that are not NULL; 0 if there are none.",
        *(variant(f"({t}) -> {t}", _sum) for t in ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL")),
    ),
    aggregate(
        "SUM_LIST",
        "The sum of all items of the arrays that are not NULL.",
        *(variant(f"(ARRAY<{t}>) -> {t}", _sum_list) for t in ("INTEGER", "BIGINT", "DOUBLE")),
    ),
    aggregate(
        "AVG",
        "The average of the values that are not NULL; 0 if there are none.",
        variant("(DOUBLE) -> DOUBLE", _average),
    ),
    aggregate(
        "STDDEV_SAMP",
        "The standard deviation of a sample; 0 for fewer than two values.",
        variant("(DOUBLE) -> DOUBLE", _deviation(1)),
    ),
    aggregate(
        "STDDEV_SAMPLE",
        "The same as STDDEV_SAMP.",
        variant("(DOUBLE) -> DOUBLE", _deviation(1)),
    ),
    aggregate(
        "STDDEV_POP",
        "The standard deviation of all values there are.",
        variant("(DOUBLE) -> DOUBLE", _deviation(0)),
    ),
    aggregate(
        "CORRELATION",
        "Pearson's coefficient of two columns; rows with a NULL do not count.",
        variant("(DOUBLE, DOUBLE) -> DOUBLE", _correlation, names=("x", "y")),
    ),
]
