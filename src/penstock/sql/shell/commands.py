"""Lines that are for the shell itself and need no semicolon: help, exit, output and the like."""

import re
from dataclasses import dataclass
from typing import Final

from penstock.sql.shell.completing import SHELL_WORDS

_LINE: Final = re.compile(r"\s*([A-Za-z]+)\s*(.*?)\s*;?\s*", re.DOTALL)
_ALONE: Final = frozenset({"EXIT", "QUIT", "CLEAR", "VERSION"})


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A word of the shell, in upper case, and what follows it."""

    word: str
    argument: str


def command_of(line: str) -> ShellCommand | None:
    """The command that a line is; None: it begins a statement."""
    found = _LINE.fullmatch(line)
    if found is None or found[1].upper() not in SHELL_WORDS:
        return None
    word, argument = found[1].upper(), found[2].strip()
    if argument and word in _ALONE:
        return None
    return ShellCommand("EXIT" if word == "QUIT" else word, argument)


HELP: Final = """\
Statements end with a semicolon and may take several lines. Ctrl-C ends a query or clears what
was typed, TAB completes words and names, Ctrl-D or exit leaves.

  SHOW STREAMS | TABLES | QUERIES | TOPICS | FUNCTIONS | TYPES | PROPERTIES | VARIABLES;
  DESCRIBE name [EXTENDED];        EXPLAIN query;          PRINT 'topic' [FROM BEGINNING] [LIMIT n];
  CREATE STREAM ...;               CREATE TABLE ...;       INSERT INTO name VALUES (...);
  SELECT ... EMIT CHANGES;         SELECT ... ;            TERMINATE query;
  SET 'auto.offset.reset' = 'earliest';  UNSET '...';  DEFINE name = 'value';  RUN SCRIPT 'file';

  help [STATEMENT]       this, or how a statement is written: help create stream
  output [JSON|TABULAR]  how results are shown
  spool FILE | off       write all that is shown to a file as well
  server [URL]           which service is asked, or ask another
  history                what was typed before
  version, clear, exit
"""

_USAGE: Final = {
    "CREATE STREAM": """\
CREATE [OR REPLACE] [SOURCE] STREAM [IF NOT EXISTS] name
  (column type [KEY | HEADERS | HEADER('key')], ...)
  WITH (KAFKA_TOPIC='...', VALUE_FORMAT='JSON', [KEY_FORMAT=..., PARTITIONS=..., TIMESTAMP=...]);
CREATE [OR REPLACE] STREAM name [WITH (...)] AS SELECT ... [PARTITION BY ...] [EMIT CHANGES];""",
    "CREATE TABLE": """\
CREATE [OR REPLACE] [SOURCE] TABLE [IF NOT EXISTS] name
  (column type PRIMARY KEY, column type, ...)
  WITH (KAFKA_TOPIC='...', VALUE_FORMAT='JSON', ...);
CREATE [OR REPLACE] TABLE name [WITH (...)] AS
  SELECT ... [WINDOW ...] [GROUP BY ...] [HAVING ...] [EMIT CHANGES | FINAL];""",
    "CREATE TYPE": "CREATE TYPE [IF NOT EXISTS] name AS type;",
    "SELECT": """\
SELECT expression [AS name], ... FROM source [alias]
  [[LEFT | RIGHT | FULL OUTER] JOIN source [WITHIN time [GRACE PERIOD time]] ON a = b]
  [WINDOW TUMBLING (SIZE time) | HOPPING (SIZE time, ADVANCE BY time) | SESSION (time)]
  [WHERE condition] [GROUP BY ...] [PARTITION BY ...] [HAVING condition]
  [EMIT CHANGES | EMIT FINAL] [LIMIT n];
With EMIT the query goes on: rows are shown as they come. Without it a table is looked up.""",
    "INSERT": """\
INSERT INTO name [(column, ...)] VALUES (value, ...);
INSERT INTO stream SELECT ... [EMIT CHANGES];""",
    "DESCRIBE": "DESCRIBE name [EXTENDED];\nDESCRIBE FUNCTION name;",
    "DROP": "DROP STREAM | TABLE [IF EXISTS] name [DELETE TOPIC];\nDROP TYPE [IF EXISTS] name;",
    "EXPLAIN": "EXPLAIN query id | SELECT ... | CREATE ... AS SELECT ...;",
    "PRINT": "PRINT 'topic' [FROM BEGINNING] [INTERVAL n] [LIMIT n];",
    "SHOW": "SHOW | LIST STREAMS | TABLES | QUERIES | TOPICS | FUNCTIONS | TYPES | PROPERTIES;",
    "TERMINATE": "TERMINATE query | ALL;   PAUSE query | ALL;   RESUME query | ALL;",
    "SET": "SET 'property' = 'value';   UNSET 'property';   for the statements of this shell",
    "DEFINE": "DEFINE name = 'value';   UNDEFINE name;   ${name} in a statement is replaced by it",
    "RUN": "RUN SCRIPT 'file';",
    "ALTER": "ALTER STREAM | TABLE name ADD COLUMN column type, ...;",
    "ASSERT": "ASSERT [NOT EXISTS] TOPIC name [TIMEOUT time];   ASSERT SCHEMA [SUBJECT s] [ID n];",
}


def help_text(about: str) -> str:
    """How a statement is written, or what there is to know."""
    wanted = " ".join(about.upper().rstrip(";").split())
    if not wanted:
        return HELP
    found = [text for name, text in _USAGE.items()
             if name.startswith(wanted) or wanted.startswith(name)]  # fmt: skip
    if found:
        return "\n\n".join(found)
    return f"There is no help on {about.strip()!r}. Try: {', '.join(sorted(_USAGE))}."
