"""Records docs/sql.svg: somebody types in the real shell, against a real server and broker.

Run from the root of the repository: `PYTHONPATH=. .venv/bin/python scripts/sql_picture.py`.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text
from tests.support.broker import BrokerProcess
from tests.support.sql_server import SqlServerProcess
from tests.support.terminal import TerminalProcess

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100
CLICKS = ("ada", "bob", "ada", "eve", "ada")
# What does not colour: the cursor's doings, and the marks of a paste.
_OTHER_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-ln-~]|\x1b[()][A-Z0-9]|\x07|\r")


def recorded(url: str, history: Path) -> str:
    """What a person sees who makes a stream, mistypes, and asks twice."""
    command = [sys.executable, "-m", "penstock.cli.main", "sql", url]
    environment = {"PENSTOCK_SQL_HISTORY": str(history)}
    with TerminalProcess(command, columns=WIDTH, environment=environment) as shell:
        shell.see("sql> ")
        shell.ask(
            "CREATE STREAM clicks (user STRING KEY, url STRING)\n"
            "WITH (kafka_topic='clicks', value_format='JSON', partitions=1);",
            "Stream created",
        )
        for number, user in enumerate(CLICKS, 1):
            shell.ask(f"INSERT INTO clicks VALUES ('{user}', '/page/{number}');", "sql> ")
        begin = shell.raw.rindex("sql> ")
        shell.ask("DESCRIBE clicks;", "EXTENDED;")
        shell.ask("SELECT * FRM clicks EMIT CHANGES;", "^")
        shell.ask("SET 'auto.offset.reset' = 'earliest';", "Successfully")
        shell.ask("SELECT user, url FROM clicks WHERE user = 'ada' EMIT CHANGES;", "/page/5")
        shell.type("\x03")
        shell.see("Query terminated: 3 rows")
        shown = shell.raw[begin:]
        shell.type("exit\n")
        shell.ended()
    return _OTHER_ESCAPES.sub("", shown).rstrip()


def main() -> None:
    """Start what is needed in a folder of its own, then draw what was shown."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with BrokerProcess(folder / "broker") as broker:
            broker.start()
            with SqlServerProcess(folder / "sql", broker.address) as server:
                server.start()
                shown = recorded(server.url, folder / "history")
                server.stop()
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(shown))
    console.save_svg(str(ROOT / "docs" / "sql.svg"), title="penstock sql")


if __name__ == "__main__":
    main()
