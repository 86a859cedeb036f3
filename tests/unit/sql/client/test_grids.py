"""Documents of a service as a shell shows them, in ksqlDB's words."""

from typing import Any

import pytest

from penstock.sql.client.answers import ServiceAnswer

TEXT = {"type": "STRING", "fields": None, "memberSchema": None}


def shown(**document: Any) -> str:
    """All cells and texts, a line each."""
    lines = []
    for grid in ServiceAnswer(document).grids():
        lines += [grid.title, *(" | ".join(row) for row in (grid.names, *grid.rows)), grid.text]
    return "\n".join(line for line in lines if line)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"@type": "assert_topic", "topicName": "clicks", "exists": True}, "Topic clicks exists."),
        (
            {"@type": "assert_topic", "topicName": "clicks", "exists": False},
            "Topic clicks does not exist.",
        ),
        (
            {"@type": "assert_schema", "subject": "c-value", "id": 7, "exists": True},
            "Schema with subject c-value id 7 exists.",
        ),
        (
            {"@type": "assert_schema", "subject": None, "id": 7, "exists": False},
            "Schema with id 7 does not exist.",
        ),
    ],
)
def test_an_assertion_that_holds_is_a_sentence(document: dict[str, Any], sentence: str) -> None:
    assert shown(**document) == sentence


def test_all_queries_are_described_one_below_the_other() -> None:
    queries = [
        {"id": name, "queryType": "PERSISTENT", "state": "RUNNING", "topology": f"of {name}"}
        for name in ("CSAS_A_1", "CTAS_B_3")
    ]
    told = shown(**{"@type": "queryDescriptions", "queryDescriptions": queries})
    assert told.index("ID                   : CSAS_A_1") < told.index("of CSAS_A_1")
    assert told.index("of CSAS_A_1") < told.index("ID                   : CTAS_B_3")
    assert "{" not in told, "a document as it came is nothing to read"


def test_a_windowed_key_and_headers_are_named() -> None:
    source = {
        "name": "T",
        "type": "TABLE",
        "windowType": "TUMBLING",
        "fields": [
            {"name": "K", "schema": TEXT, "type": "KEY"},
            {"name": "V", "schema": TEXT},
            {"name": "H", "schema": TEXT, "type": "HEADER", "headerKey": "h"},
        ],
    }
    lines = shown(**{"@type": "sourceDescription", "sourceDescription": source}).split("\n")
    assert "K | VARCHAR(STRING) (primary key) (Window type: TUMBLING)" in lines
    assert "V | VARCHAR(STRING)" in lines
    assert "H | VARCHAR(STRING) (header('h'))" in lines
