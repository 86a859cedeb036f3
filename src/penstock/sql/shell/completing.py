"""What a word at the prompt may become: keywords, names of streams, tables, columns, functions."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.sql.language.names import quoted
from penstock.sql.language.words import WORDS

SHELL_WORDS: Final = ("CLEAR", "EXIT", "HELP", "HISTORY", "OUTPUT", "QUIT", "SERVER", "SPOOL",
                      "VERSION")  # fmt: skip
_FIRST: Final = (
    "ALTER", "ASSERT", "CREATE", "DEFINE", "DESCRIBE", "DROP", "EXPLAIN", "INSERT", "LIST", "PAUSE",
    "PRINT", "RESUME", "RUN", "SELECT", "SET", "SHOW", "TERMINATE", "UNDEFINE", "UNSET",
)  # fmt: skip
_SHOWN: Final = ("CONNECTORS", "FUNCTIONS", "PROPERTIES", "QUERIES", "STREAMS", "TABLES", "TOPICS",
                 "TYPES", "VARIABLES")  # fmt: skip
_AFTER: Final = {"OUTPUT": ("JSON", "TABULAR"), "SHOW": _SHOWN, "LIST": _SHOWN, "SPOOL": ("OFF",)}
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_@]*|`[^`]*`|'[^']*'?|[^\s\w]")
_SOURCES: Final = re.compile(r"\b(?:FROM|JOIN|INTO)\s+(`[^`]+`|\w+)(?:\s+(?:AS\s+)?(\w+))?", re.I)
_DELIMITERS: Final = " \t\n()[],;=<>+-*/%!"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """What exists in the service, as far as the shell has heard."""

    sources: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    columns_of: Callable[[str], Iterable[str]] = field(default=lambda _: (), repr=False)


def completions(text: str, names: KnownNames) -> list[str]:
    """All words that the last one of the text may become, each with what stands before it."""
    word = last_word(text)
    before = text[: len(text) - len(word)]
    if word.startswith("${"):
        return _beginning_with(word, (f"${{{name}}}" for name in names.variables))
    source, dot, _ = word.rpartition(".")
    if dot:
        columns = names.columns_of(_meant(source, text))
        return _beginning_with(word, (f"{source}.{quoted(one)}" for one in columns))
    return _beginning_with(word, _candidates(before, names))


def last_word(text: str) -> str:
    """What is being typed; a variable may stand in the middle of a text."""
    variable = text.rfind("${")
    if variable >= 0 and "}" not in text[variable:]:
        return text[variable:]
    begin = len(text)
    while begin and text[begin - 1] not in _DELIMITERS:
        begin -= 1
    return text[begin:]


def _candidates(before: str, names: KnownNames) -> Iterable[str]:
    words = [word.upper() for word in _WORD.findall(before.rpartition(";")[2])]
    if not words:
        return (*_FIRST, *SHELL_WORDS)
    last = words[-1]
    if last in _AFTER and len(words) == 1:
        return _AFTER[last]
    if last in ("FROM", "JOIN", "INTO") or words == ["DESCRIBE"]:
        return _quoted(names.sources)
    if words[0] in ("DROP", "ALTER", "DESCRIBE") and last in ("STREAM", "TABLE", "EXISTS"):
        return _quoted(names.sources)
    if words == ["PRINT"]:
        return tuple(f"'{topic}'" for topic in names.topics)
    if words in (["TERMINATE"], ["PAUSE"], ["RESUME"]):
        return (*names.queries, "ALL")
    if words == ["EXPLAIN"]:
        return (*names.queries, "SELECT", "CREATE")
    columns = {one for source in _mentioned(before) for one in names.columns_of(source)}
    return (*_quoted(columns), *names.functions, *_quoted(names.sources), *WORDS)


def _quoted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(quoted(name) for name in names)


def _mentioned(text: str) -> set[str]:
    return {_plain(found[1]) for found in _SOURCES.finditer(text)}


def _meant(alias: str, text: str) -> str:
    """The source that an alias of the statement stands for."""
    aliases: Mapping[str, str] = {
        _plain(found[2]): _plain(found[1]) for found in _SOURCES.finditer(text) if found[2]
    }
    return aliases.get(_plain(alias), _plain(alias))


def _plain(name: str) -> str:
    return name[1:-1] if name.startswith("`") else name.upper()


def _beginning_with(word: str, candidates: Iterable[str]) -> list[str]:
    """Those that begin like the word, in the case it is written in."""
    folded = word.upper()
    found = sorted({one for one in candidates if one.upper().startswith((folded, f"`{folded}"))})
    if word and word == word.lower() and word != word.upper():
        return [one if one[:1] in "`'" else one.lower() for one in found]
    return found
