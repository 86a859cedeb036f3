"""What the shell does with a statement: some it carries out itself, the others it sends.

SET, UNSET, DEFINE, UNDEFINE and RUN SCRIPT belong to the one who types; everything is read here
before it is sent, so that a mistake is shown where it was made.
"""

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from penstock.errors import CommandError
from penstock.sql.client.connection import SqlConnection
from penstock.sql.client.errors import SqlServiceRefused
from penstock.sql.client.grids import Grid
from penstock.sql.client.row_stream import RowStream
from penstock.sql.language.parse import parse
from penstock.sql.language.place import SqlSyntaxError
from penstock.sql.language.queries import Select
from penstock.sql.language.scripts import statement_texts, without_comments
from penstock.sql.language.statements import (
    PrintTopic,
    RunScript,
    SetProperty,
    SetVariable,
    Show,
    Statement,
)
from penstock.sql.language.variables import substitute
from penstock.sql.shell.output import ShellOutput

_SCRIPT_BYTES_MAX = 16_000_000
_SCRIPTS_DEEP_MAX = 10  # A script may run others, but not itself for ever.


class StatementMistake(CommandError):
    """A statement that cannot be read or was refused; `str` is what to show."""


@dataclass(slots=True, kw_only=True)
class ShellSession:
    """The connection, what SET and DEFINE said, and where results are shown."""

    connection: SqlConnection
    output: ShellOutput
    rows_max: int | None = None  # Of a query; None: as many as come.
    changes: int = 0  # Statements that may have made or removed names.
    _scripts: list[Path] = field(default_factory=list)

    def run(self, text: str) -> None:
        """Carry out all statements of a text; StatementMistake ends it at the first that fails."""
        for one in statement_texts(text):
            if without_comments(one).strip(" \t\r\n;"):
                self._run_one(one)

    def _run_one(self, text: str) -> None:
        filled, statement = self._read(text)
        try:
            self._carry_out(statement, filled.strip())
        except SqlServiceRefused as error:
            for document in error.entities:
                self.output.document(document)
            raise StatementMistake(str(error)) from None

    def _read(self, text: str) -> tuple[str, Statement]:
        try:
            filled = substitute(text, self.connection.variables)
            return filled, parse(filled)[0]
        except SqlSyntaxError as error:
            raise StatementMistake(f"{error}\n{error.picture()}".rstrip()) from None

    def _carry_out(self, statement: Statement, text: str) -> None:
        match statement:
            case Select():
                self._query(statement, text)
            case PrintTopic():
                self._print(text)
            case SetProperty(is_for_all=False):
                self._set(statement)
            case SetVariable():
                self._define(statement)
            case RunScript():
                self.run_file(Path(statement.path))
            case Show(what="VARIABLES"):
                self._show_variables()
            case _:
                self._execute(text)

    def run_file(self, path: Path) -> None:
        """The statements of a file, as if they had been typed."""
        if len(self._scripts) >= _SCRIPTS_DEEP_MAX:
            raise StatementMistake(f"{path}: scripts run each other more than "
                                   f"{_SCRIPTS_DEEP_MAX} levels deep")  # fmt: skip
        text = script_text(path)
        self._scripts.append(path)
        try:
            self.run(text)
        except StatementMistake as error:
            raise StatementMistake(f"{path}: {error}") from None
        finally:
            self._scripts.pop()

    def _execute(self, text: str) -> None:
        self.changes += 1
        sent = SqlConnection(http=self.connection.http, properties=self.connection.properties)
        for answer in sent.execute(text):
            if self.output.style == "JSON":
                self.output.document(answer.document)
                continue
            for warning in answer.warnings:
                self.output.say(f"Warning: {warning}", "yellow")
            for grid in answer.grids():
                self.output.grid(grid)

    def _query(self, statement: Select, text: str) -> None:
        with self.connection.stream(text) as rows:
            if statement.emit:
                self._follow(rows)
            else:
                self._show_all(rows)

    def _follow(self, rows: RowStream) -> None:
        live = self.output.live(rows.columns)
        live.begin()
        count, ended = 0, "Query completed"
        try:
            for row in islice(rows, self.rows_max):
                live.show(row)
                count += 1
            if count == self.rows_max:
                ended = "Row limit reached"
        except KeyboardInterrupt:
            ended = "Query terminated"
            self.output.say("")  # The terminal has shown ^C in this line.
        live.end()
        if self.output.style == "TABULAR":
            self.output.say(f"{ended}: {_counted(count)}", "dim")

    def _show_all(self, rows: RowStream) -> None:
        found = list(islice(rows, self.rows_max))
        self.output.rows(rows.columns, found)
        if self.output.style == "TABULAR":
            self.output.say(_counted(len(found)), "dim")

    def _print(self, text: str) -> None:
        with self.connection.print_topic(text) as lines:
            try:
                for line in islice(lines, self.rows_max):
                    self.output.say(line.decode("utf-8", "replace"))
            except KeyboardInterrupt:
                self.output.say("Topic printing ceased", "dim")

    def _set(self, statement: SetProperty) -> None:
        held = self.connection.properties
        if statement.value is None:
            if statement.name not in held:
                raise StatementMistake(f"Cannot unset '{statement.name}': it was never set.")
            del held[statement.name]
            self.output.say(f"Successfully unset local property '{statement.name}'.")
            return
        held[statement.name] = statement.value
        self.output.say(f"Successfully changed local property '{statement.name}' to "
                        f"'{statement.value}'.")  # fmt: skip

    def _define(self, statement: SetVariable) -> None:
        held = self.connection.variables
        same = next((n for n in held if n.upper() == statement.name.upper()), None)
        if statement.value is None:
            if same is None:
                self.output.say(f"Variable name '{statement.name}' was never defined.")
            else:
                del held[same]
            return
        held[same or statement.name] = statement.value

    def _show_variables(self) -> None:
        rows = tuple(sorted(self.connection.variables.items()))
        self.output.grid(Grid(names=("Variable Name", "Value"), rows=rows))


def script_text(path: Path) -> str:
    """The text of a script; CommandError says why it cannot be had."""
    try:
        if path.expanduser().stat().st_size > _SCRIPT_BYTES_MAX:
            raise CommandError(f"{path} has more than {_SCRIPT_BYTES_MAX} bytes.")
        return path.expanduser().read_text("utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} cannot be read: it is no text in UTF-8") from None


def _counted(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
