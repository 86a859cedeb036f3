"""NULL, and the function that changes nothing."""

from typing import Any

from penstock.sql.functions.catalogue import Catalogue

catalogue = Catalogue("CONDITIONAL")


@catalogue.scalar(
    "COALESCE",
    "(T, T...) -> T",
    takes_nulls=True,
    about="The first of the values that is not NULL.",
)
def coalesce(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


@catalogue.scalar(
    "IFNULL", "(T, T) -> T", takes_nulls=True, about="The value, or another if it is NULL."
)
def if_null(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


@catalogue.scalar(
    "NULLIF",
    "(T, T) -> T",
    takes_nulls=True,
    about="The value, or NULL if it is equal to the other.",
)
def null_if(value: Any, other: Any) -> Any:
    return None if value is not None and value == other else value


@catalogue.scalar(
    "AS_VALUE",
    "(T) -> T",
    takes_nulls=True,
    about="The same value: a copy of a key column among the columns of the value.",
)
def as_value(value: Any) -> Any:
    return value
