"""Names: upper case unless they are quoted, and quoted where they would be read as another."""

import re
from typing import Final

from penstock.sql.language.words import RESERVED

_PLAIN: Final = re.compile(r"[A-Z_][A-Z0-9_]*")


def name_of(word: str) -> str:
    """The name that a word of the text means."""
    if word[0] not in '`"':
        return word.upper()
    quote = word[0]
    return word[1:-1].replace(quote * 2, quote)


def quoted(name: str) -> str:
    """The name as the text has it."""
    if _PLAIN.fullmatch(name) and name not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def quoted_string(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("'", "''") + "'"
