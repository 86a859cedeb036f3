"""The type a column needs to hold one more value, and the value in that type.

Pure. A column grows as far as its format lets it (rules.py). A whole number is never rounded:
columns in which one beyond 2^53 was seen are remembered, for such a column can never become one
of doubles. That keeps what one task decides true for all others.
"""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.lake.columns.rules import ELEMENT, Path, Rules, check_name, is_text
from penstock.lake.columns.schema import wider
from penstock.lake.errors import IncompatibleSchema, UnfitName

WHOLE_IN_DOUBLE_MAX = 2**53
WHOLE_IN_FLOAT_MAX = 2**24
LEVELS_MAX = 30  # Delta's log and Parquet's readers have limits not far above.
_MAP_VALUE = "value"
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_FLOAT_MAX = 3.4e38
_DECIMAL_DIGITS_MAX = 38


class JsonObject(dict[str, Any]):
    """An object as it stood in the text: a name that came twice is remembered."""

    twice: str | None = None

    @classmethod
    def of_pairs(cls, pairs: list[tuple[str, Any]]) -> "JsonObject":
        found = cls(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            found.twice = next(name for name in names if names.count(name) > 1)
        return found


class Demand:
    """What type a column needs to be to hold one more value; a misfit where none will do."""

    def __init__(self, rules: Rules, exact: set[Path]) -> None:
        self.rules = rules
        self.exact = exact

    def kind(self, value: Any, old: pa.DataType | None, path: Path) -> pa.DataType | None:
        """None: the type is as unknown as before."""
        if len(path) > LEVELS_MAX:
            raise _too_deep(path)
        if isinstance(value, dict):
            return self._object(value, old, path)
        if is_untyped(value):
            return old
        if isinstance(value, list):
            return self._list(value, old, path)
        if isinstance(value, bool):
            return self._simple(value, old, path, pa.bool_())
        if isinstance(value, int):
            return self._whole(value, old, path)
        if isinstance(value, float | Decimal):
            return self._real(value, old, path)
        if old is not None and not pa.types.is_string(old):
            return self._text(value, old, path)
        _check_text(value, path)
        return pa.string()

    def joined(self, old: pa.DataType | None, new: pa.DataType, path: Path) -> pa.DataType | None:
        """One type for a column of each."""
        if len(path) > LEVELS_MAX:
            raise _too_deep(path)
        if pa.types.is_struct(new) and (old is None or pa.types.is_struct(old)):
            return self._joined_structs(old, new, path)
        if pa.types.is_list(new) and (old is None or pa.types.is_list(old)):
            inner = None if old is None else old.value_type
            kind = self.joined(inner, new.value_type, (*path, ELEMENT))
            return old if kind is None else pa.list_(pa.field(ELEMENT, kind))
        if old is None:
            return None if pa.types.is_null(new) else new
        try:
            both = wider(old, new)
        except IncompatibleSchema:
            raise _conflict(path, old, new) from None
        return both if both.equals(old) else self._widened(path, old, both, new)

    def _joined_structs(
        self, old: pa.DataType | None, new: pa.DataType, path: Path
    ) -> pa.DataType | None:
        fields = {} if old is None else {one.name.lower(): one for one in old}
        for one in new:
            have = fields.get(one.name.lower())
            if have is not None and have.name != one.name:
                why = f"the table has {have.name} there, which differs only in case"
                raise UnfitName(".".join((*path, one.name)), why)
            inner = None if have is None else have.type
            kind = self.joined(inner, one.type, (*path, one.name))
            if kind is not None:
                if have is None:
                    check_name(one.name)
                fields[one.name.lower()] = pa.field(one.name, kind)
        return pa.struct(list(fields.values())) if fields else None

    def _object(self, value: dict[str, Any], old: Any, path: Path) -> pa.DataType | None:
        if isinstance(value, JsonObject) and value.twice is not None:
            raise UnfitName(".".join((*path, value.twice)), "one object has it twice")
        if old is not None and pa.types.is_map(old):
            return self._map(value, old, path)
        if old is not None and not pa.types.is_struct(old):
            if is_untyped(value):
                return old
            raise _conflict(path, old, "struct")
        fields = {} if old is None else {one.name.lower(): one for one in old}
        seen: dict[str, str] = {}
        for name, one in value.items():
            other = name if is_untyped(one) else seen.setdefault(name.lower(), name)
            if other != name:
                raise UnfitName(".".join((*path, name)), f"it differs from {other} only in case")
            have = fields.get(name.lower())
            called = name if have is None else have.name
            kind = self.kind(one, None if have is None else have.type, (*path, called))
            if kind is not None:
                if have is None:
                    check_name(name)
                fields[name.lower()] = pa.field(called, kind)
        return pa.struct(list(fields.values())) if fields else old

    def _map(self, value: dict[str, Any], old: pa.DataType, path: Path) -> pa.DataType:
        if not pa.types.is_string(old.key_type):
            raise _conflict(path, old, "struct")
        item = old.item_type
        for one in value.values():
            item = self.kind(one, item, (*path, _MAP_VALUE))
        return pa.map_(old.key_type, item)

    def _list(self, value: list[Any], old: Any, path: Path) -> pa.DataType:
        if old is not None and not pa.types.is_list(old):
            raise _conflict(path, old, "list")
        kind = None if old is None else old.value_type
        for one in value:
            kind = self.kind(one, kind, (*path, ELEMENT))
        assert kind is not None, "an untyped list does not come here"
        return pa.list_(pa.field(ELEMENT, kind))

    def _simple(self, value: Any, old: Any, path: Path, kind: pa.DataType) -> pa.DataType:
        if old is not None and not old.equals(kind):
            raise _conflict(path, old, kind)
        return kind

    def _whole(self, value: int, old: Any, path: Path) -> pa.DataType:
        narrow = _integer_type(value)
        if old is None:
            kind = narrow or pa.float64()
        elif pa.types.is_integer(old):
            kind = old if _is_within(value, old) else narrow or pa.float64()
            if not kind.equals(old):
                kind = self._widened(path, old, kind, _named(value))
        elif pa.types.is_floating(old):
            kind = old
            if pa.types.is_float32(old) and abs(value) > WHOLE_IN_FLOAT_MAX:
                kind = self._widened(path, old, pa.float64(), _named(value))
        elif pa.types.is_decimal(old):
            return self._decimal(Decimal(value), old, path)
        else:
            raise _conflict(path, old, pa.int64())
        if pa.types.is_floating(kind) and not _is_exact(value):
            raise _conflict(path, old or kind, _named(value))
        if pa.types.is_integer(kind) and abs(value) > WHOLE_IN_DOUBLE_MAX:
            self.exact.add(path)
        return kind

    def _real(self, value: float | Decimal, old: Any, path: Path) -> pa.DataType:
        finite = not isinstance(value, Decimal) or math.isfinite(float(value))
        if not finite:
            raise _conflict(path, old or pa.float64(), "a number beyond the range of doubles")
        if old is None or pa.types.is_float64(old):
            return pa.float64()
        if pa.types.is_floating(old):
            is_small = not math.isfinite(value) or abs(float(value)) <= _FLOAT_MAX
            return old if is_small else self._widened(path, old, pa.float64(), pa.float64())
        if pa.types.is_decimal(old) and isinstance(value, Decimal):
            return self._decimal(value, old, path)
        if not pa.types.is_integer(old):
            raise _conflict(path, old, pa.float64())
        try:
            return self._widened(path, old, pa.float64(), pa.float64())
        except IncompatibleSchema:
            if isinstance(value, Decimal) and value == value.to_integral_value():
                return self._whole(int(value), old, path)
            raise

    def _decimal(self, value: Decimal, old: pa.DataType, path: Path) -> pa.DataType:
        _, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int), "it is finite"
        scale = max(0, -exponent)
        whole = max(len(digits) + exponent, 1)
        scale = max(scale, old.scale)
        precision = max(old.precision - old.scale, whole) + scale
        if scale == old.scale and precision == old.precision:
            return old
        if precision > _DECIMAL_DIGITS_MAX:
            raise _conflict(path, old, f"a number of {len(digits)} digits")
        kind = pa.decimal128(precision, scale)
        return self._widened(path, old, kind, kind)

    def _text(self, value: str, old: pa.DataType, path: Path) -> pa.DataType:
        """Times, dates and decimals stand in JSON as text; bytes take the text's."""
        _check_text(value, path)
        try:
            if pa.types.is_timestamp(old):
                _moment(value, old)
            elif pa.types.is_date(old):
                date.fromisoformat(value)
            elif pa.types.is_decimal(old):
                return self._decimal(_finite(Decimal(value)), old, path)
            elif not pa.types.is_binary(old):
                raise _conflict(path, old, pa.string())
        except (ValueError, ArithmeticError):
            raise _conflict(path, old, pa.string()) from None
        return old

    def _widened(
        self, path: Path, old: pa.DataType, kind: pa.DataType, brought: pa.DataType | str
    ) -> pa.DataType:
        if pa.types.is_integer(old) and pa.types.is_floating(kind) and path in self.exact:
            raise _conflict(path, old, brought, why="the column has whole numbers beyond 2^53")
        if not self.rules.may_widen(path, old, kind):
            why = "Iceberg does not promote that"
            if len(path) == 1 and path[0] in self.rules.folders:
                why = "the table is partitioned by it"
            raise _conflict(path, old, brought, why=why)
        return kind


def fitted_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values that fit, in the column's type."""
    return pa.array([as_type(value, kind) for value in values], kind)


def as_type(value: Any, kind: pa.DataType) -> Any:
    """A value that fits, as pyarrow takes it for this type."""
    if value is None or (is_untyped(value) and not _is_container(kind)):
        return None
    if pa.types.is_struct(kind):
        return _as_struct(value, kind)
    if pa.types.is_map(kind):
        return [(name, as_type(one, kind.item_type)) for name, one in value.items()]
    if pa.types.is_list(kind):
        return None if isinstance(value, dict) else [as_type(v, kind.value_type) for v in value]
    if pa.types.is_integer(kind):
        return int(value)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_timestamp(kind):
        return _moment(value, kind)
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    return value.encode() if pa.types.is_binary(kind) else value


def _as_struct(value: Any, kind: pa.DataType) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None  # An empty list, which says nothing.
    given: dict[str, Any] = {}
    for name, one in value.items():
        if name.lower() not in given or not is_untyped(one):  # Not a null over a value.
            given[name.lower()] = one
    return {one.name: as_type(given.get(one.name.lower()), one.type) for one in kind}


def is_untyped(value: Any) -> bool:
    """Null, or nothing but nulls and emptiness: it tells no type, and any column takes it."""
    if isinstance(value, dict):
        return all(is_untyped(one) for one in value.values())
    if isinstance(value, list):
        return all(is_untyped(one) for one in value)
    return value is None


def _is_container(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_map(kind))


def _conflict(
    path: Path, old: pa.DataType, new: pa.DataType | str, *, why: str = ""
) -> IncompatibleSchema:
    return IncompatibleSchema(".".join(path), str(old), str(new), why=why)


def _too_deep(path: Path) -> IncompatibleSchema:
    return IncompatibleSchema(path[0], f"at most {LEVELS_MAX} levels deep", "more")


def _integer_type(value: int) -> pa.DataType | None:
    return pa.int64() if _LONG_MIN <= value <= _LONG_MAX else None


def _is_within(value: int, kind: pa.DataType) -> bool:
    limit: int = 1 << (kind.bit_width - 1)
    return -limit <= value < limit


def _is_exact(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _named(value: int) -> str:
    return "int64" if _integer_type(value) else "a whole number beyond 64 bits"


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ValueError(value)
    return value


def _moment(value: str, kind: pa.DataType) -> datetime:
    """ISO 8601; without an offset it is UTC, and a column without a zone takes no offset."""
    found = datetime.fromisoformat(value)
    if kind.tz is None:
        if found.tzinfo is not None:
            raise ValueError(value)
        return found
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _check_text(value: str, path: Path) -> None:
    if not is_text(value):
        raise _conflict(path, pa.string(), "half of a surrogate pair")
