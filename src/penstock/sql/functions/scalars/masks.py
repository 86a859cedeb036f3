"""MASK and its kin: characters hidden behind one for their kind."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.sql.functions.catalogue import Catalogue

catalogue = Catalogue("STRING")
_DEFAULTS: Final = ("X", "x", "n", "-")


def _mask(text: str, masks: Sequence[str | None]) -> str:
    return "".join(_masked(character, masks) for character in text)


def _masked(character: str, masks: Sequence[str | None]) -> str:
    """A mask that is NULL leaves its kind of characters alone."""
    kinds = (character.isupper(), character.islower(), character.isdigit(), True)
    mask = masks[kinds.index(True)]
    return character if mask is None else mask


def _checked(masks: tuple[str | None, ...]) -> tuple[str | None, ...]:
    if not masks:
        return _DEFAULTS
    for mask in masks:
        if mask is not None and len(mask) != 1:
            raise ValueError(f"a mask is one character, not {mask!r}")
    return masks


@catalogue.scalar(
    "MASK",
    "(STRING) -> STRING",
    "(STRING, STRING, STRING, STRING, STRING) -> STRING",
    takes_nulls=True,
    about="The text with upper case, lower case, digits and all others behind X, x, n and -.",
)
def mask(text: str | None, *masks: str | None) -> str | None:
    return None if text is None else _mask(text, _checked(masks))


def _declare(name: str, about: str, hide: Callable[[str, int, Any], str]) -> None:
    def masked(text: str | None, count: int | None, *masks: str | None) -> str | None:
        if text is None or count is None:
            return None
        if count < 0:
            raise ValueError(f"{name} takes a number of 0 or more, not {count}")
        return hide(text, count, _checked(masks))

    catalogue.scalar(
        name,
        "(STRING, INTEGER) -> STRING",
        "(STRING, INTEGER, STRING, STRING, STRING, STRING) -> STRING",
        takes_nulls=True,
        about=about,
    )(masked)


def _left(text: str, count: int, masks: Any) -> str:
    return _mask(text[:count], masks) + text[count:]


def _right(text: str, count: int, masks: Any) -> str:
    start = max(len(text) - count, 0)
    return text[:start] + _mask(text[start:], masks)


def _all_but_left(text: str, count: int, masks: Any) -> str:
    return text[:count] + _mask(text[count:], masks)


def _all_but_right(text: str, count: int, masks: Any) -> str:
    start = max(len(text) - count, 0)
    return _mask(text[:start], masks) + text[start:]


_declare("MASK_LEFT", "The text with its first characters masked.", _left)
_declare("MASK_RIGHT", "The text with its last characters masked.", _right)
_declare("MASK_KEEP_LEFT", "The text with all but its first characters masked.", _all_but_left)
_declare("MASK_KEEP_RIGHT", "The text with all but its last characters masked.", _all_but_right)
