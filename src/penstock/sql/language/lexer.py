"""Words, names, numbers and signs of a text, each with its place.

Every word of the language is a token of its own kind, so that the grammar can say where it is a
name. Comments and white space vanish here.
"""

import re
from collections.abc import Iterator
from typing import Final

from lark import Token
from lark.lexer import Lexer

from penstock.sql.language.place import Place, SqlSyntaxError
from penstock.sql.language.words import WORDS

_PIECES: Final = re.compile(
    r"""
    (?P<SPACE>  \s+ | --[^\r\n]* | /\*.*?\*/ )
    | (?P<STRING> '(?:[^']|'')*' )
    | (?P<QUOTED> `(?:[^`]|``)*` | "(?:[^"]|"")*" )
    | (?P<FLOAT>  (?:\d+(?:\.\d*)?|\.\d+)[eE][+-]?\d+(?![A-Za-z0-9_]) )
    | (?P<DECIMAL> \d+\.\d* (?![A-Za-z0-9_]) | \.\d+ (?![A-Za-z0-9_]) )
    | (?P<INTEGER> \d+(?![A-Za-z0-9_]) )
    | (?P<DIGIT_NAME> \d[A-Za-z0-9_]* )
    | (?P<NAME>   [A-Za-z_][A-Za-z0-9_@]* )
    | (?P<SIGN>   -> | => | := | <> | != | <= | >= | \|\| | /(?!\*) | [()\[\],.;=<>+\-*%:] )
    """,
    re.VERBOSE | re.DOTALL,
)
_SIGNS: Final = {
    "->": "ARROW", "=>": "LAMBDA", ":=": "ASSIGN", "<>": "DIFFERS", "!=": "DIFFERS", "<=":
    "AT_MOST", ">=": "AT_LEAST", "||": "CONCAT", "(": "LPAR", ")": "RPAR", "[": "LSQB", "]":
    "RSQB", ",": "COMMA", ".": "DOT", ";": "SEMICOLON", "=": "EQUAL", "<": "LESS", ">":
    "MORE", "+": "PLUS", "-": "MINUS", "*": "STAR", "/": "SLASH", "%": "PERCENT", ":":
    "COLON",
}  # fmt: skip
SIGN_OF: Final = {kind: sign for sign, kind in _SIGNS.items()}
_UNENDED: Final = {"'": "a string", "`": "a quoted name", '"': "a quoted name"}


class TextLexer(Lexer):
    """lark's interface; the parser is given tokens that were read before."""

    def __init__(self, _settings: object) -> None:
        """lark hands over what its own lexers need."""

    def lex(self, data: "list[Token]") -> Iterator[Token]:  # type: ignore[override]
        return iter(data)


def read_tokens(text: str) -> Iterator[Token]:
    """All tokens; raises SqlSyntaxError where there is none."""
    at, line, line_start = 0, 1, 0
    while at < len(text):
        found = _PIECES.match(text, at)
        place = Place(line, at - line_start + 1)
        if found is None:
            raise SqlSyntaxError(_fault(text, at), place=place, text=text)
        piece = found[0]
        if found.lastgroup != "SPACE":
            yield _token(found, place, text)
        at = found.end()
        if breaks := piece.count("\n"):
            line += breaks
            line_start = found.start() + piece.rindex("\n") + 1


def _token(found: re.Match[str], place: Place, text: str) -> Token:
    kind, value = str(found.lastgroup), found[0]
    if kind == "DIGIT_NAME":
        reason = f"the name {value} begins with a digit: write it as `{value}`"
        raise SqlSyntaxError(reason, place=place, text=text)
    if kind == "SIGN":
        kind = _SIGNS[value]
    elif kind == "NAME" and value.upper() in WORDS:
        kind = value.upper()
    return Token(kind, value, found.start(), place.line, place.column, end_pos=found.end())


def _fault(text: str, at: int) -> str:
    if what := _UNENDED.get(text[at]):
        return f"{what} that begins here does not end"
    if text.startswith("/*", at):
        return "a comment that begins here does not end"
    return f"{text[at]!r} is not part of the language"
