"""penstock sql [URL]: the shell, or statements of the command line, a file or standard input."""

import argparse
import getpass
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.cli.parser import ToolParser, key_values

if TYPE_CHECKING:
    from penstock.sql.shell.session import ShellSession

DEFAULT_URL: Final = "http://localhost:8088"
_HISTORY: Final = ".penstock_sql_history"
_USAGE = (
    "penstock sql [URL] [-e STATEMENTS | -f FILE] [OPTIONS]\n"
    "Ask a SQL service: at a prompt, or for the statements of the command line, of a file or of "
    f"standard input. Without a URL it is {DEFAULT_URL}."
)


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    if options.execute is not None and options.file is not None:
        parser.error("take -e or -f, not both")
    session = _session(options)
    for name, value in key_values(options.define or (), "--define").items():
        session.connection.variables[name] = value
    if options.execute is not None:
        return _run(session, options.execute)
    if options.file is not None:
        return _run_file(session, Path(options.file))
    if not sys.stdin.isatty():
        return _run(session, sys.stdin.read())
    return _ask(session)


def _parser() -> ToolParser:
    parser = ToolParser("penstock sql", _USAGE)
    parser.add_argument("url", nargs="?", default=DEFAULT_URL, help="Where the service is.")
    parser.add_argument("--execute", "-e", metavar="STATEMENTS", help="Run these, and end.")
    parser.add_argument(
        "--file", "-f", metavar="FILE", help="Run the statements of a file, and end."
    )
    parser.add_argument("--output", metavar="JSON|TABULAR", type=str.upper, default="TABULAR",
                        choices=("JSON", "TABULAR"), help="How results are shown.")  # fmt: skip
    parser.add_argument("--user", "-u", metavar="NAME", help="Who asks.")
    parser.add_argument("--password", "-p", metavar="PASSWORD",
                        help="Of the user. Without it, it is asked for.")  # fmt: skip
    parser.add_argument("--ca", metavar="FILE", help="A PEM file of certificates to trust.")
    parser.add_argument("--define", "-d", metavar="NAME=VALUE", action="append",
                        help="A variable, as DEFINE makes it; may be given again.")  # fmt: skip
    parser.add_argument("--query-row-limit", metavar="ROWS", type=int,
                        help="How many rows of a query are shown.")  # fmt: skip
    return parser


def _session(options: argparse.Namespace) -> "ShellSession":
    from rich.console import Console

    from penstock.sql.client.connection import connect
    from penstock.sql.shell.output import ShellOutput
    from penstock.sql.shell.session import ShellSession

    connection = connect(options.url, auth=_auth(options), ca_location=options.ca)
    output = ShellOutput(
        Console(highlight=False), Console(stderr=True, highlight=False), options.output
    )
    return ShellSession(connection=connection, output=output, rows_max=options.query_row_limit)


def _auth(options: argparse.Namespace) -> tuple[str, str] | None:
    if options.user is None:
        return None
    password = options.password
    if password is None:
        password = getpass.getpass(f"Password of {options.user}: ")
    return options.user, password


def _run(session: "ShellSession", text: str) -> int:
    """Errors are for the front door: one sentence and exit code 1."""
    session.run(text)
    return 0


def _run_file(session: "ShellSession", path: Path) -> int:
    session.run_file(path)
    return 0


def _ask(session: "ShellSession") -> int:
    from penstock.sql.shell.prompt import Prompt

    chosen = os.environ.get("PENSTOCK_SQL_HISTORY")
    history = Path.home() / _HISTORY if chosen is None else Path(chosen)
    Prompt(session, history if str(history) != os.devnull else None).run()
    return 0
