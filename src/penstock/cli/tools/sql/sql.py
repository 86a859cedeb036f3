"""penstock sql: the shell; test scripts of streaming SQL, and show how a query would run."""

import argparse
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.parser import ToolParser
from penstock.errors import CommandError

if TYPE_CHECKING:
    from penstock.sql.functions.table import FunctionTable
    from penstock.sql.testing.scripts import CaseResult

_USAGE = (
    "penstock sql [URL]\n"
    "penstock sql server FILE\n"
    "penstock sql test FILE... [--case TEXT]\n"
    "penstock sql explain FILE\n"
    "Ask a SQL service (penstock sql --help), run scripts of streaming SQL that test themselves, "
    "without a broker, and show how the queries of a script would run."
)
_ACTIONS = ("test", "explain")
_BYTES_MAX = 16_000_000


def main(argv: Sequence[str]) -> int:
    if argv and argv[0] == "server":
        from penstock.cli.tools.servers import sql_server

        return sql_server.main(argv[1:])
    if not argv or argv[0] not in _ACTIONS:
        from penstock.cli.tools.sql.shell import main as shell

        return shell(argv)
    parser = _parser()
    options = parser.parse(argv)
    if options.action == "test":
        return _test(options)
    if options.case is not None or len(options.files) != 1:
        parser.error("explain takes one file, and no --case")
    return _explain(Path(options.files[0]))


def _parser() -> ToolParser:
    parser = ToolParser("penstock sql", _USAGE)
    parser.add_argument("action", choices=_ACTIONS, help="What to do.")
    parser.add_argument("files", nargs="+", help="Scripts of SQL.")
    parser.add_argument("--case", metavar="TEXT", help="Only cases whose names contain the text.")
    return parser


def functions() -> "FunctionTable":
    """ksqlDB's functions, with this machine's clock and chance."""
    from penstock.sql.functions.built_in import built_in
    from penstock.sql.functions.table import Surroundings

    chance = secrets.SystemRandom()
    return built_in(
        Surroundings(
            now_ms=lambda: time.time_ns() // 1_000_000,
            random=chance.random,
            random_bytes=secrets.token_bytes,
        )
    )


def _test(options: argparse.Namespace) -> int:
    from penstock.sql.testing.scripts import cases_of, run_case

    known, failed, count = functions(), 0, 0
    for file in options.files:
        for case in cases_of(_text(Path(file))):
            if options.case is None or options.case in case.name:
                count += 1
                failed += _tell(file, run_case(case, known))
    if not count:
        raise CommandError("There is no case to run: the files have none of that name.")
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed else 0


def _tell(file: str, result: "CaseResult") -> bool:
    mark = "ok    " if result.fault is None else "FAILED"
    print(f"{mark} {file}:{result.case.first_line} {result.case.name}")
    if result.fault is not None:
        print(f"       {result.fault}")
    return result.fault is not None


def _explain(path: Path) -> int:
    from penstock.sql.catalog.refusal import StatementRefused
    from penstock.sql.language.place import SqlSyntaxError
    from penstock.sql.testing.explain import explained

    try:
        for text in explained(_text(path), functions()):
            print(text)
    except SqlSyntaxError as error:
        print(f"{path}: {error}\n{error.picture()}".rstrip(), file=sys.stderr)
        return 1
    except StatementRefused as error:
        raise CommandError(f"{path}: {error}") from None
    return 0


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise CommandError(f"{path} has more than {_BYTES_MAX} bytes.")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
