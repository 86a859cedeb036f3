"""Text to statements. What is too long, too deep or not in the language is refused at its place."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from lark import Lark, Token
from lark.exceptions import UnexpectedToken

from penstock.sql.language.lexer import SIGN_OF, TextLexer, read_tokens
from penstock.sql.language.place import Place, SqlSyntaxError
from penstock.sql.language.reduce_statements import StatementBuilder
from penstock.sql.language.statements import Statement
from penstock.sql.language.words import SOFT

TEXT_CHARACTERS_MAX: Final = 4_000_000
STATEMENT_TOKENS_MAX: Final = 50_000
DEPTH_MAX: Final = 150  # Of what is nested: whoever walks a statement does so by recursion.
_EXPECTED_MAX: Final = 8
_KINDS: Final = {
    "NAME": "a name",
    "STRING": "a string in quotes",
    "INTEGER": "a whole number",
    "$END": "the end of the statement",
}
_NEVER_TOLD: Final = frozenset({"QUOTED", "DECIMAL", "FLOAT"})


def parse(text: str) -> list[Statement]:
    """All statements of a script; the last one may do without its semicolon."""
    return [parse_tokens(tokens, text) for tokens in split(text)]


def parse_one(text: str) -> Statement:
    """The one statement that the text is."""
    found = parse(text)
    if len(found) != 1:
        reason = f"one statement was expected, and {len(found)} came"
        raise SqlSyntaxError(reason, place=Place(1, 1), text=text)
    return found[0]


def split(text: str) -> Iterator[list[Token]]:
    """The tokens of each statement, without the semicolon."""
    if len(text) > TEXT_CHARACTERS_MAX:
        reason = f"the text is longer than {TEXT_CHARACTERS_MAX} characters"
        raise SqlSyntaxError(reason, place=Place(1, 1))
    tokens: list[Token] = []
    for token in read_tokens(text):
        if token.type != "SEMICOLON":
            tokens.append(token)
            _bound(tokens, text)
        elif tokens:
            yield tokens
            tokens = []
    if tokens:
        yield tokens


def parse_tokens(tokens: list[Token], text: str) -> Statement:
    """One statement; `text` is what errors show a line of."""
    try:
        statement: Statement = _grammar().parse(tokens)  # type: ignore[assignment]
    except UnexpectedToken as error:
        raise _unexpected(error, tokens, text) from None
    except SqlSyntaxError as error:
        raise SqlSyntaxError(error.reason, place=error.place, text=text) from None
    if _depth(statement) > DEPTH_MAX:
        reason = f"the statement is nested more than {DEPTH_MAX} levels deep"
        raise SqlSyntaxError(reason, place=_at(tokens[0]), text=text)
    return statement


@cache
def _grammar() -> Lark:
    text = files("penstock.sql.language").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        text, parser="lalr", lexer=TextLexer, start="statement", transformer=StatementBuilder(),
        maybe_placeholders=True,
    )  # fmt: skip


def _bound(tokens: list[Token], text: str) -> None:
    if len(tokens) > STATEMENT_TOKENS_MAX:
        reason = f"the statement has more than {STATEMENT_TOKENS_MAX} words and signs"
        raise SqlSyntaxError(reason, place=_at(tokens[0]), text=text)


def _at(token: Token) -> Place:
    return Place(token.line or 1, token.column or 1)


def _unexpected(error: UnexpectedToken, tokens: list[Token], text: str) -> SqlSyntaxError:
    token = error.token
    expected = _told(error.expected or error.accepts)
    if token.type == "$END":
        last = tokens[-1]
        place = Place(last.line or 1, (last.column or 1) + len(last))
        return SqlSyntaxError(f"the statement ends too early: {expected}", place=place, text=text)
    return SqlSyntaxError(
        f"{str(token)!r} does not fit here: {expected}", place=_at(token), text=text
    )


def _told(kinds: Any) -> str:
    """What was expected. Words that are only names here are not listed: any name would do."""
    has_name = "NAME" in kinds
    words = sorted(k for k in kinds if k not in _NEVER_TOLD and not (has_name and k in SOFT))
    words.sort(key=lambda kind: kind not in _KINDS)
    told = [_KINDS.get(kind) or SIGN_OF.get(kind, kind) for kind in words]
    if len(told) > _EXPECTED_MAX:
        told = [*told[:_EXPECTED_MAX], "..."]
    return f"expected {' or '.join(told)}"


def _depth(root: Any) -> int:
    """How deep values lie in values; without recursion, because this is what bounds recursion."""
    deepest, waiting = 0, [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(node, tuple):
            waiting += [(part, depth) for part in node]
        elif isinstance(node, dict):
            waiting += [(part, depth) for part in node.values()]
        elif is_dataclass(node):
            waiting += [(getattr(node, part.name), depth + 1) for part in fields(node)]
    return deepest
