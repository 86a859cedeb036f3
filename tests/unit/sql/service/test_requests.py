"""Bodies of requests."""

import pytest

from penstock.sql.service.requests import MalformedRequest, json_object, sql_request


def test_properties_and_variables_become_texts() -> None:
    document = {
        "ksql": "SHOW STREAMS;",
        "streamsProperties": {
            "ksql.a": True,
            "ksql.b": 1,
            "ksql.c": "x",
            "ksql.d": None,
        },
        "sessionVariables": {"v": "1"},
        "commandSequenceNumber": 3,
    }
    found = sql_request(document, text="ksql", properties="streamsProperties")
    assert found.text == "SHOW STREAMS;" and found.sequence_number == 3
    assert found.scope.properties == {"ksql.a": "true", "ksql.b": "1", "ksql.c": "x"}
    assert found.scope.variables == {"v": "1"}


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"ksql": 1},
        {"ksql": "", "streamsProperties": []},
        {"ksql": "", "streamsProperties": {"auto.offset.reset": []}},
        {"ksql": "", "streamsProperties": {"unheard.of": "x"}},
        {"ksql": "", "streamsProperties": {"auto.offset.reset": "earlist"}},
        {"ksql": "", "streamsProperties": {"ksql.streams.commit.interval.ms": "soon"}},
        {"ksql": "", "commandSequenceNumber": "1"},
        {"ksql": "", "commandSequenceNumber": True},
    ],
)
def test_other_forms_are_refused_with_ksqldbs_code(document: dict[str, object]) -> None:
    with pytest.raises(MalformedRequest) as refused:
        sql_request(document, text="ksql", properties="streamsProperties")
    assert refused.value.code == 40000


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedRequest):
        json_object(body)
