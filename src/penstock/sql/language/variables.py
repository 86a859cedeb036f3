"""`${name}` in the text of a statement, replaced before it is read.

A value cannot change what a statement is: in quotes it stays text, elsewhere it is one name, number
or string. `$${name}` stays `${name}`, and nothing is replaced in comments.
"""

import re
from collections.abc import Mapping
from typing import Final

from penstock.sql.language.lexer import read_tokens
from penstock.sql.language.parse import TEXT_CHARACTERS_MAX
from penstock.sql.language.place import Place, SqlSyntaxError

_PARTS: Final = re.compile(r"(--[^\r\n]*|/\*.*?\*/)|(['\"`])|\$?\$\{([^}]*)\}", re.DOTALL)
_IN_QUOTES: Final = re.compile(r"(?!)()|(['\"`])|\$?\$\{([^}]*)\}", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """The text with its variables replaced; their names do not heed case."""
    if "$" not in text and len(text) <= TEXT_CHARACTERS_MAX:
        return text
    known = {name.upper(): value for name, value in variables.items()}
    made: list[str] = []
    quote, at, size = "", 0, 0
    while found := (_IN_QUOTES if quote else _PARTS).search(text, at):
        part = found[0]
        if found[2] is not None:
            quote = _quote_after(quote, part)
        elif found[3] is not None:
            part = _replaced(found, quote, known, text)
        made += [text[at : found.start()], part]
        size += found.start() - at + len(part)
        if size > TEXT_CHARACTERS_MAX:
            raise SqlSyntaxError("the text with its variables is too long", place=_place(text, at))
        at = found.end()
    return "".join([*made, text[at:]])


def _quote_after(quote: str, sign: str) -> str:
    if not quote:
        return sign
    return "" if sign == quote else quote


def _replaced(found: re.Match[str], quote: str, known: Mapping[str, str], text: str) -> str:
    if found[0].startswith("$$"):
        return found[0][1:]
    place = _place(text, found.start())
    name = found[3]
    if not _NAME.fullmatch(name):
        raise SqlSyntaxError(f"{name!r} cannot be the name of a variable", place=place, text=text)
    value = known.get(name.upper())
    if value is None:
        reason = f"the variable {name} is not defined: DEFINE {name} = '...' does"
        raise SqlSyntaxError(reason, place=place, text=text)
    if quote:
        return value.replace(quote, quote * 2)
    if not _is_one_word(value):
        reason = f"the value of {name} is not one name, number or string: write '${{{name}}}'"
        raise SqlSyntaxError(reason, place=place, text=text)
    return value


def _is_one_word(value: str) -> bool:
    try:
        tokens = list(read_tokens(value.removeprefix("-")))
    except SqlSyntaxError:
        return False
    signs = {"SEMICOLON", "LPAR", "RPAR", "COMMA"}
    return (
        len(tokens) == 1
        and tokens[0].type not in signs
        and len(tokens[0]) == len(value.removeprefix("-"))
    )


def _place(text: str, at: int) -> Place:
    before = text[:at]
    return Place(before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1)
