"""Scripts that test themselves: those of tests/golden/sql/queries pass, and wrong ones do not."""

from pathlib import Path

import pytest
from tests.support.sql_functions import sql_functions

from penstock.sql.testing.scripts import TestCase, cases_of, run_case

QUERIES = Path(__file__).resolve().parents[3] / "golden" / "sql" / "queries"
CASES = [
    pytest.param(case, id=f"{path.stem}: {case.name}")
    for path in sorted(QUERIES.glob("*.sql"))
    for case in cases_of(path.read_text())
]
SETUP = """
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S WHERE A > 1;
INSERT INTO S VALUES (1, 1);
INSERT INTO S VALUES (2, 2);
"""


@pytest.mark.parametrize("case", CASES)
def test_a_case_of_the_suite_passes(case: TestCase) -> None:
    assert run_case(case, sql_functions()).fault is None


def fault_of(text: str, message: str | None = None) -> str | None:
    case = TestCase(name="one", text=SETUP + text, message=message)
    return run_case(case, sql_functions()).fault


def test_a_right_assertion_passes() -> None:
    assert fault_of("ASSERT VALUES O VALUES (2, 2);") is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("ASSERT VALUES O VALUES (2, 3);", "A is 2 and not 3"),
        ("ASSERT VALUES O VALUES (1, 2);", "ID is 2 and not 1"),
        ("ASSERT VALUES O (ROWTIME, ID) VALUES (5, 2);", "ROWTIME is 0 and not 5"),
        ("ASSERT VALUES O VALUES (2, NULL);", "A is 2 and not NULL"),
        ("ASSERT VALUES O VALUES (2, 2); ASSERT VALUES O VALUES (3, 3);", "no further record"),
        ("INSERT INTO S VALUES (3, 3); ASSERT VALUES O VALUES (2, 2);", "the topic O has 1 more"),
        ("ASSERT NULL VALUES O (ID) KEY (2);", "a record came and no tombstone"),
        ("ASSERT STREAM O (ID INT KEY, B BIGINT);", "O has the columns"),
        ("ASSERT TABLE O (ID INT PRIMARY KEY, A BIGINT);", "O is a STREAM, not a TABLE"),
        ("ASSERT STREAM O WITH (value_format='AVRO');", "has VALUE_FORMAT 'JSON' and not 'AVRO'"),
        ("ASSERT VALUES NOBODY VALUES (1);", "NOBODY does not exist"),
        ("SELECT;", "line 6:7: the statement ends too early"),
        ("SELECT * FROM S;", "A test script has no place for Select"),
    ],
)
def test_a_wrong_script_fails_and_says_why(text: str, fault: str) -> None:
    assert fault in (fault_of(text) or "it passed")


def test_a_refusal_that_is_expected_must_come_and_have_the_message() -> None:
    refused = "CREATE STREAM S (ID INT KEY) WITH (kafka_topic='s', value_format='JSON');"
    assert fault_of(refused, "already exists") is None
    assert "already exists" in (fault_of(refused, "something else") or "")
    assert "no statement was refused" in (fault_of("", "something") or "")


def test_the_suite_is_as_large_as_promised() -> None:
    assert len(CASES) >= 600


def test_a_fault_names_the_line_of_the_file() -> None:
    text = "--@test: first\nDROP STREAM IF EXISTS S;\n\n--@test: second\n\nDROP STREAM S;\n"
    first, second = cases_of(text)
    assert (first.name, second.name, second.first_line) == ("first", "second", 4)
    fault = run_case(second, sql_functions()).fault
    assert fault is not None and fault.startswith("line 6:1: Stream S does not exist")
