"""Entries of the processing log: ksqlDB's shape, and where the record lies."""

import base64
import json
import pickle

from tests.support.sql_functions import sql_functions

from penstock.sql.language.parse import parse
from penstock.sql.running.processing_log import ENTRIES_MAX, LogEntries, log_stream, query_log
from penstock.sql.testing.session import TestSession
from penstock.streams.tasks.failures import RecordFailure

UNREAD = RecordFailure("no JSON", 7, "value", "t", 1, 42, b"\xff{")
FAILED = RecordFailure("Error computing expression CAST(V AS INT): no number", 7, None, "t", 1, 42,
                       b'{"V": "x"}')  # fmt: skip
KINDS = ("productionError", "serializationError", "kafkaStreamsThreadError")


def test_a_record_that_cannot_be_read_is_of_type_0() -> None:
    entry = json.loads(LogEntries("CSAS_A_1", shows_rows=False)(UNREAD))
    assert (entry["level"], entry["logger"], entry["time"]) == (
        "ERROR", "processing.CSAS_A_1.deserializer", 7)  # fmt: skip
    assert entry["message"] == {
        "type": 0,
        "deserializationError": {
            "target": "value",
            "errorMessage": "Error deserializing the value of a record of t: no JSON",
            "recordB64": None,
            "cause": ["no JSON"],
            "topic": "t",
            "partition": 1,
            "offset": 42,
        },
        "recordProcessingError": None,
        **dict.fromkeys(KINDS),
    }


def test_an_expression_that_fails_is_of_type_1() -> None:
    entry = json.loads(LogEntries("CSAS_A_1", shows_rows=False)(FAILED))
    assert entry["logger"] == "processing.CSAS_A_1"
    assert entry["message"] == {
        "type": 1,
        "deserializationError": None,
        "recordProcessingError": {
            "errorMessage": FAILED.reason,
            "record": None,
            "cause": [],
            "topic": "t",
            "partition": 1,
            "offset": 42,
        },
        **dict.fromkeys(KINDS),
    }


def test_rows_are_shown_where_that_is_wanted_and_not_whole_where_they_are_long() -> None:
    entries = LogEntries("Q", shows_rows=True)
    unread = json.loads(entries(UNREAD))["message"]["deserializationError"]
    assert base64.b64decode(unread["recordB64"]) == UNREAD.data
    failed = json.loads(entries(FAILED))["message"]["recordProcessingError"]
    assert failed["record"] == '{"V": "x"}'
    assert len(entries(UNREAD._replace(data=b"x" * 5_000_000))) < 20_000
    assert len(entries(FAILED._replace(data=b"x" * 5_000_000))) < 20_000


def test_the_log_of_a_query_travels_to_workers() -> None:
    log = pickle.loads(pickle.dumps(query_log("log", "Q", shows_rows=True)))
    assert (log.topic, log.entries_max) == ("log", ENTRIES_MAX)
    assert log.entry(FAILED) == LogEntries("Q", shows_rows=True)(FAILED)


def test_the_stream_of_the_log_reads_its_entries() -> None:
    session = TestSession(sql_functions())
    text = log_stream("KSQL_PROCESSING_LOG", "log") + (
        "CREATE STREAM PLACES AS SELECT MESSAGE->TYPE AS T, "
        "MESSAGE->`recordProcessingError`->`offset` AS O FROM KSQL_PROCESSING_LOG;"
    )
    for statement in parse(text):
        session.run(statement)
    assert "PLACES" in session.catalog.relations
