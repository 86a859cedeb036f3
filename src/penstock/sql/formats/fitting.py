"""Values that a schema typed already, as the columns want them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from penstock.sql.formats.codec import FormatMisfit
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import ArrayOf, DataType, DecimalOf, MapOf, StructOf
from penstock.sql.types.numbers import fitted

_CLASSES: Mapping[str, tuple[type, ...]] = {
    "BOOLEAN": (bool,),
    "INTEGER": (int,),
    "BIGINT": (int,),
    "DOUBLE": (int, float),
    "STRING": (str,),
    "BYTES": (bytes,),
    "TIMESTAMP": (datetime,),
    "DATE": (date,),
    "TIME": (time,),
}


def fields_by_name(found: Any, names: Sequence[str], kinds: Sequence[DataType | None]) -> list[Any]:
    """The values of a record's fields; those that are missing are NULL, case is not heeded."""
    if not isinstance(found, dict):
        raise FormatMisfit(f"a record is expected, not {found!r:.80}")
    upper = {key.upper(): value for key, value in found.items()}
    return [
        fit(found.get(name, upper.get(name.upper())), kind, name)
        for name, kind in zip(names, kinds, strict=True)
    ]


def fit(found: Any, kind: DataType | None, where: str) -> Any:
    """The value in the type of its column; FormatMisfit if it is of another."""
    if found is None:
        return None
    match kind:
        case ArrayOf() if isinstance(found, list):
            return [fit(one, kind.item, where) for one in found]
        case MapOf() if isinstance(found, dict):
            return {fit(k, kind.key, where): fit(v, kind.value, where) for k, v in found.items()}
        case StructOf() if isinstance(found, dict):
            names = [name for name, _ in kind.fields]
            values = fields_by_name(found, names, [one for _, one in kind.fields])
            return dict(zip(names, values, strict=True))
        case DecimalOf() if isinstance(found, Decimal | int) and not isinstance(found, bool):
            return _fitted(Decimal(found), kind, where)
    return _primitive(found, kind, where)


def _fitted(found: Decimal, kind: DecimalOf, where: str) -> Decimal:
    try:
        return fitted(found, kind)
    except RowFailure as failure:
        raise FormatMisfit(f"{where}: {failure.reason}") from None


def _primitive(found: Any, kind: DataType | None, where: str) -> Any:
    name = str(kind)
    classes = _CLASSES.get(name, ())
    is_right = isinstance(found, classes) and (name == "BOOLEAN" or not isinstance(found, bool))
    if not is_right or (name == "DATE" and isinstance(found, datetime)):
        raise FormatMisfit(f"{found!r:.80} is not a {kind}, which {where} is")
    if name == "INTEGER" and not -(1 << 31) <= found < 1 << 31:
        raise FormatMisfit(f"{found} is too large for the INTEGER that {where} is")
    if name == "DOUBLE":
        return float(found)
    if name == "TIMESTAMP":
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return found
