"""A person types in the shell, in a real terminal, against a real server."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.processes import HOST, free_port, python
from tests.support.sql_server import SqlServerProcess
from tests.support.terminal import TerminalProcess

import penstock.sql

CLICKS = (
    "CREATE STREAM SHELL_CLICKS (NAME STRING KEY, URL STRING, N INT) "
    "WITH (kafka_topic='shell_clicks', value_format='JSON', partitions=1);"
)
COLUMNS = 72


@pytest.fixture(scope="module")
def service(sql: SqlServerProcess) -> SqlServerProcess:
    sql.ksql(CLICKS)
    connection = penstock.sql.connect(sql.url)
    connection.insert_many(
        "SHELL_CLICKS", [{"NAME": f"n{i}", "URL": f"/page/{i}", "N": i} for i in range(3)]
    )
    return sql


def command(url: str, *words: str) -> list[str]:
    return [python(), "-m", "penstock.cli.main", "sql", url, *words]


@pytest.fixture
def shell(service: SqlServerProcess, tmp_path: Path) -> Iterator[TerminalProcess]:
    history = {"PENSTOCK_SQL_HISTORY": str(tmp_path / "history")}
    with TerminalProcess(command(service.url), columns=COLUMNS, environment=history) as shown:
        shown.see("sql> ")
        yield shown


def run(url: str, *words: str, typed: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(url, *words), input=typed, capture_output=True, text=True, timeout=120,
        env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip


def test_a_person_looks_around(shell: TerminalProcess) -> None:
    assert "service default_" in shell.text
    shown = shell.ask("show\n streams;", "└")
    assert "  -> " in shown, "a statement goes on until its semicolon"
    assert "SHELL_CLICKS" in shown
    lines = [line for line in shown.split("\n") if line.startswith(tuple("┌│├└"))]
    assert lines and {len(line) for line in lines} == {len(lines[0])}
    assert len(lines[0]) <= COLUMNS
    assert "VARCHAR(STRING) (key)" in shell.ask("DESCRIBE shell_clicks;", "EXTENDED;")
    assert "SELECT expression" in shell.ask("help select", "looked up.")


def test_a_mistake_is_shown_at_its_word(shell: TerminalProcess) -> None:
    shown = shell.ask("SELECT * FRM shell_clicks;", "^")
    lines = shown.split("\n")
    at = next(i for i, line in enumerate(lines) if "does not fit here" in line)
    assert "expected , or FROM" in lines[at]
    assert lines[at + 2].index("^") == lines[at + 1].index("FRM")
    assert "NOBODY does not exist" in shell.ask("CREATE STREAM X AS SELECT * FROM NOBODY;", "exist")
    assert "sql> " in shell.see("sql> ")


def test_a_push_query_shows_rows_as_they_come_until_ctrl_c(
    shell: TerminalProcess, service: SqlServerProcess
) -> None:
    shell.ask("SET 'auto.offset.reset' = 'earliest';", "Successfully changed")
    since = len(shell.text)
    shell.ask("SELECT NAME, N FROM SHELL_CLICKS EMIT CHANGES;", "n2")
    penstock.sql.connect(service.url).insert("SHELL_CLICKS", {"NAME": "later", "N": 7})
    shell.see("later", since=since)
    shell.type("\x03")
    shell.see("Query terminated: ", since=since)
    assert "Penstock" not in shell.text[since:], "the shell is still the same"
    assert shell.ask("version", "0.") is not None


def test_tab_completes_words_and_names(shell: TerminalProcess) -> None:
    since = len(shell.text)
    shell.type("SELECT U\x7f* FROM SHELL_CL\t")
    shell.see("SHELL_CLICKS", since=since)
    shell.type(" WHERE UR\t")
    shell.see("URL", since=since)
    since = len(shell.text)
    shell.type("\x03")
    shell.see("sql> ", since=since)
    shell.type("DESCR\t")
    shell.see("DESCRIBE", since=since)


@pytest.mark.parametrize("typed", ["SELECT", "SELECT * FROM SHELL_CL\t", "\t"])
def test_ctrl_c_clears_the_line_at_any_moment(shell: TerminalProcess, typed: str) -> None:
    for _ in range(10):
        since = len(shell.text)
        shell.type(typed)
        shell.type("\x03")
        shell.see("\nsql> ", since=since)
    assert shell.ask("version", "0.") is not None


def test_variables_json_and_the_spool(shell: TerminalProcess, tmp_path: Path) -> None:
    spool = tmp_path / "kept.txt"
    shell.ask(f"spool {spool}", "goes to")
    shell.ask("SET 'auto.offset.reset' = 'earliest';", "Successfully")
    shell.ask("DEFINE who = 'n1';", "sql> ")
    shell.ask("output json", "Output format: JSON")
    shown = shell.ask(
        "SELECT NAME, URL FROM SHELL_CLICKS WHERE NAME = '${who}' EMIT CHANGES LIMIT 1;", "page/1"
    )
    assert '{"NAME":"n1","URL":"/page/1"}' in shown.replace("\n", "")
    shell.ask("spool off", "sql> ")
    kept = spool.read_text()
    assert '{"NAME":"n1","URL":"/page/1"}' in kept
    assert "\x1b" not in kept


def test_the_shell_leaves_and_keeps_its_history(shell: TerminalProcess, tmp_path: Path) -> None:
    shell.ask("SHOW TABLES;", "sql> ")
    shell.type("exit\n")
    assert shell.ended() == 0
    history = tmp_path / "history"
    assert "SHOW TABLES;" in history.read_text().splitlines()
    assert history.stat().st_mode & 0o077 == 0


def test_statements_of_the_command_line_a_file_and_standard_input(
    service: SqlServerProcess, tmp_path: Path
) -> None:
    query = "SELECT NAME, N FROM SHELL_CLICKS EMIT CHANGES LIMIT 2;"
    set_first = "SET 'auto.offset.reset' = 'earliest';"
    told = run(service.url, "--output", "json", "-e", f"{set_first} {query}")
    assert (told.returncode, told.stderr) == (0, "")
    rows = [json.loads(line) for line in told.stdout.splitlines() if line.startswith("{")]
    assert rows == [{"NAME": "n0", "N": 0}, {"NAME": "n1", "N": 1}]
    inner, outer = tmp_path / "inner.sql", tmp_path / "outer.sql"
    inner.write_text(f"-- first this\n{set_first}\n")
    outer.write_text(f"RUN SCRIPT '{inner}';\n{query}\n")
    assert "│ n1" in run(service.url, "-f", str(outer)).stdout
    assert "SHELL_CLICKS" in run(service.url, typed="LIST STREAMS;").stdout


def test_errors_without_a_terminal_are_one_sentence_and_code_1(
    service: SqlServerProcess, tmp_path: Path
) -> None:
    refused = run(service.url, "-e", "SHOW TABLES; DROP STREAM NOBODY;")
    assert refused.returncode == 1
    assert "NOBODY does not exist" in refused.stderr
    bad = tmp_path / "bad.sql"
    bad.write_text("SHOW STREAMS;\nSELEC;\n")
    wrong = run(service.url, "-f", str(bad))
    assert wrong.returncode == 1
    assert "line 2:1: 'SELEC' does not fit here" in wrong.stderr
    assert wrong.stderr.rstrip().endswith("SELEC;\n^")
    missing = run(service.url, "-f", str(tmp_path / "none.sql"))
    assert (missing.returncode, "cannot be read" in missing.stderr) == (1, True)
    nobody = run(f"http://{HOST}:{free_port()}", "-e", "SHOW STREAMS;")
    assert (nobody.returncode, nobody.stderr.count("\n")) == (1, 1)
    assert not any("Traceback" in one.stderr for one in (refused, wrong, missing, nobody))
