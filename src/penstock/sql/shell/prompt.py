"""The prompt: lines until a semicolon, history, completion; Ctrl-C clears, Ctrl-D leaves."""

import os
import readline
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from penstock import __version__
from penstock.errors import CommandError, PenstockError
from penstock.sql.client.connection import SqlConnection
from penstock.sql.client.errors import SqlClientError
from penstock.sql.client.service_http import ServiceHttp
from penstock.sql.language.scripts import is_complete, without_comments
from penstock.sql.shell.commands import ShellCommand, command_of, help_text
from penstock.sql.shell.completing import KnownNames, completions, last_word
from penstock.sql.shell.interrupts import INTERRUPTED, bind_ctrl_c, ctrl_c_as_key
from penstock.sql.shell.session import ShellSession

PROMPT: Final = "sql> "
_MORE: Final = "  -> "
_HISTORY_LINES_MAX: Final = 5_000
_ASKING_S: Final = 3.0  # For names to complete: nobody waits longer for a TAB.
_STYLES: Final = ("TABULAR", "JSON")


@dataclass(slots=True)
class Prompt:
    """Reads what is typed and hands it to the session."""

    session: ShellSession
    history: Path | None
    _names: KnownNames = field(default_factory=KnownNames)
    _names_of: int = -1  # The session's count of changes when the names were asked for.
    _columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _offered: list[str] = field(default_factory=list)
    _typed: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Until the one who types leaves."""
        self._prepare()
        self._greet()
        try:
            while self._take(self._read(_MORE if self._typed else PROMPT)):
                pass
        finally:
            self._keep_history()
            self.session.output.end_spool()

    def _greet(self) -> None:
        output, connection = self.session.output, self.session.connection
        output.say(f"Penstock SQL {__version__}", "bold")
        try:
            told = connection.info()
            service = f"{connection.http.url}, service {told.get('ksqlServiceId', '?')}"
            output.say(f"{service}. Statements end with a semicolon; help tells more.")
        except SqlClientError as error:
            output.complain(str(error))
            output.say("Start one with `penstock sql server`, or ask another: server URL", "dim")

    def _read(self, prompt: str) -> str | None:
        """A line; an empty one after Ctrl-C, None after Ctrl-D."""
        try:
            with ctrl_c_as_key():
                line = input(prompt)
        except EOFError:
            self.session.output.say("")
            return None
        except KeyboardInterrupt:  # It came before the terminal was told.
            self.session.output.say("")
            line = INTERRUPTED
        if line != INTERRUPTED:
            return line
        self._typed.clear()
        return ""

    def _take(self, line: str | None) -> bool:
        """Whether to go on."""
        if line is None:
            return False
        command = None if self._typed else command_of(line)
        if command is not None:
            self._remember(line)
            return self._obey(command)
        if line.strip() or self._typed:
            self._typed.append(line)
        text = "\n".join(self._typed)
        if is_complete(text):
            self._typed.clear()
            self._remember(" ".join(without_comments(text).split()))
            self._guarded(lambda: self.session.run(text), typed=text)
        return True

    def _obey(self, command: ShellCommand) -> bool:
        actions: dict[str, Callable[[str], None]] = {
            "HELP": lambda about: self.session.output.say(help_text(about)),
            "VERSION": lambda _: self.session.output.say(__version__),
            "CLEAR": lambda _: self.session.output.console.clear(),
            "HISTORY": self._show_history,
            "OUTPUT": self._choose_output,
            "SPOOL": self._spool,
            "SERVER": self._server,
        }
        if command.word == "EXIT":
            return False
        self._guarded(lambda: actions[command.word](command.argument), typed=command.word)
        return True

    def _guarded(self, action: Callable[[], None], typed: str) -> None:
        """What fails is told, and the shell goes on."""
        self.session.output.keep_typed(f"{PROMPT}{typed}")
        try:
            action()
        except PenstockError as error:
            self.session.output.complain(str(error))
        except KeyboardInterrupt:
            self.session.output.say("")

    def _choose_output(self, argument: str) -> None:
        output, wanted = self.session.output, argument.upper().strip("'")
        if wanted and wanted not in _STYLES:
            raise CommandError(f"output {argument}: write output JSON or output TABULAR")
        if wanted:
            output.style = "JSON" if wanted == "JSON" else "TABULAR"
        output.say(f"Output format: {output.style}")

    def _spool(self, argument: str) -> None:
        output, path = self.session.output, argument.strip("'")
        if not path:
            raise CommandError("spool FILE writes all that is shown to a file, spool off ends it")
        if path.upper() == "OFF":
            output.end_spool()
            return
        output.spool_to(Path(path))
        output.say(f"All that is shown goes to {path} too.")

    def _server(self, argument: str) -> None:
        connection = self.session.connection
        if not argument:
            self.session.output.say(connection.http.url)
            return
        http = ServiceHttp.of(argument, ca_location=connection.http.ca_location)
        self.session.connection = SqlConnection(
            http=http, properties=connection.properties, variables=connection.variables
        )
        self.session.changes += 1
        self._greet()

    def _show_history(self, _: str) -> None:
        for at in range(1, readline.get_current_history_length() + 1):
            self.session.output.say(f"{at:5} {readline.get_history_item(at)}")

    def _prepare(self) -> None:
        readline.set_auto_history(False)
        readline.set_history_length(_HISTORY_LINES_MAX)
        if self.history is not None and self.history.exists():
            try:
                readline.read_history_file(self.history)
            except OSError as error:
                self.session.output.complain(f"{self.history} cannot be read: {error.strerror}")
        readline.set_completer_delims(" \t\n()[],;=<>+-*/%!")
        readline.set_completer(self.complete)
        readline.parse_and_bind("tab: complete")
        readline.parse_and_bind("set bell-style none")
        bind_ctrl_c()

    def _remember(self, line: str) -> None:
        if line.strip():
            readline.add_history(line)

    def _keep_history(self) -> None:
        if self.history is None:
            return
        try:
            descriptor = os.open(self.history, os.O_WRONLY | os.O_CREAT, 0o600)
            os.close(descriptor)  # What was typed may hold secrets: nobody else reads it.
            readline.write_history_file(self.history)
        except OSError as error:
            self.session.output.complain(f"{self.history} cannot be written: {error.strerror}")

    def complete(self, word: str, number: int) -> str | None:
        """readline asks for the first, the second, ... until there is none."""
        if number == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            self._offered = self._completions("\n".join([*self._typed, line]), word)
        return self._offered[number] if number < len(self._offered) else None

    def _completions(self, text: str, word: str) -> list[str]:
        """readline replaces its word, which may be less than ours, or more."""
        more = len(last_word(text)) - len(word)
        before, skipped = word[: max(0, -more)], max(0, more)
        return [before + one[skipped:] for one in completions(text, self._known())]

    def _known(self) -> KnownNames:
        if self._names_of != self.session.changes:
            self._names_of = self.session.changes
            self._columns.clear()
            self._names = self._asked_names()
        return self._names

    def _asked_names(self) -> KnownNames:
        return KnownNames(
            sources=(*self._named("LIST STREAMS;", "streams"),
                     *self._named("LIST TABLES;", "tables")),
            functions=self._named("LIST FUNCTIONS;", "functions"),
            topics=self._named("LIST TOPICS;", "topics"),
            queries=self._named("LIST QUERIES;", "queries", "id"),
            variables=tuple(self.session.connection.variables),
            columns_of=self._columns_of,
        )  # fmt: skip

    def _named(self, statement: str, part: str, name: str = "name") -> tuple[str, ...]:
        return tuple(str(one[name]) for one in self._asked(statement).get(part) or ())

    def _columns_of(self, source: str) -> tuple[str, ...]:
        if source not in self._columns:
            name = source.replace("`", "``")
            told = self._asked(f"DESCRIBE `{name}`;").get("sourceDescription") or {}
            self._columns[source] = tuple(str(one["name"]) for one in told.get("fields") or ())
        return self._columns[source]

    def _asked(self, statement: str) -> dict[str, Any]:
        """An answer of the service, quickly or not at all: a TAB must not end in an error."""
        held = self.session.connection
        http = replace(held.http, timeout_s=_ASKING_S)
        try:
            [answer] = SqlConnection(http=http).execute(statement)
        except (SqlClientError, ValueError):
            return {}
        return answer.document if isinstance(answer.document, dict) else {}
