"""Test scripts: one file of SQL, cut into cases by comments.

    --@test: how many clicks each user made
    CREATE STREAM ...; INSERT INTO ...; ASSERT VALUES ...;

    --@test: a column that is not there
    --@expected.message: cannot be resolved
    CREATE STREAM ...;

A case with an expected message passes if a statement is refused with it. Every case begins with
nothing. These are the words of ksqlDB's own test runner.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language.parse import parse
from penstock.sql.language.place import Place, SqlSyntaxError
from penstock.sql.language.scripts import statement_texts
from penstock.sql.language.variables import substitute
from penstock.sql.testing.session import AssertionFailed, TestSession

_MARK: Final = re.compile(r"^--@(test|expected\.error|expected\.message):[ \t]*(.*?)\s*$", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """One case of a script."""

    __test__ = False  # pytest takes classes by this name for tests.

    name: str
    text: str
    first_line: int = 1
    message: str | None = None  # That a statement is refused with.


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How a case went; no fault: well."""

    case: TestCase
    fault: str | None = None


def cases_of(text: str) -> Iterator[TestCase]:
    """The cases of a script; what comes before the first mark is one without a name."""
    marks = [found for found in _MARK.finditer(text) if found[1] == "test"]
    starts = [found.start() for found in marks]
    if not starts or text[: starts[0]].strip():
        first = text[: starts[0]] if starts else text
        if any(parse(one) for one in statement_texts(first)):
            yield _case("the script", first, 1)
    for at, found in enumerate(marks):
        end = starts[at + 1] if at + 1 < len(starts) else len(text)
        yield _case(found[2], text[found.start() : end], text.count("\n", 0, found.start()) + 1)


def _case(name: str, text: str, first_line: int) -> TestCase:
    message = None
    for found in _MARK.finditer(text):
        if found[1] == "expected.message":
            message = found[2]
        elif found[1] == "expected.error" and message is None:
            message = ""
    return TestCase(name=name, text=text, first_line=first_line, message=message)


def run_case(case: TestCase, functions: FunctionTable) -> CaseResult:
    """Run one case from nothing."""
    session = TestSession(functions)
    try:
        _run_all(case, session)
        session.finish()
    except (StatementRefused, SqlSyntaxError) as error:
        return _refused(case, error.reason, error.place)
    except AssertionFailed as error:
        return CaseResult(case, str(error))
    if case.message is not None:
        return CaseResult(case, f"no statement was refused, though one should be: {case.message}")
    return CaseResult(case)


def _run_all(case: TestCase, session: TestSession) -> None:
    for text in statement_texts(case.text):
        filled = substitute(text, session.catalog.variables)
        for statement in parse(filled):
            session.run(statement)


def _refused(case: TestCase, reason: str, place: Place | None) -> CaseResult:
    if case.message is not None and case.message in reason:
        return CaseResult(case)
    where = "" if place is None else f"line {case.first_line + place.line - 1}:{place.column}: "
    return CaseResult(case, f"{where}{reason}")
