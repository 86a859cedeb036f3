"""What the headers of a dead letter say."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.schemas.dead_letters import REASON_CHARACTERS_MAX, Cause, cause_of, own_headers

TEXT = st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50)
NUMBER = st.none() | st.integers(-1, 2**63 - 1)
CAUSES = st.builds(
    Cause,
    topic=TEXT,
    partition=NUMBER,
    offset=NUMBER,
    timestamp_ms=NUMBER,
    pipeline=TEXT,
    stage=TEXT,
    error_class=TEXT,
    message=TEXT,
    last_offset=NUMBER,
)
HEADERS = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=4)


@given(CAUSES, HEADERS)
def test_the_cause_and_the_own_headers_come_back(
    cause: Cause, own: list[tuple[str, bytes | None]]
) -> None:
    headers = [*own, *cause.headers()]
    assert cause_of(headers) == cause
    assert own_headers(headers) == own


def test_a_record_that_failed_twice_tells_the_last_time() -> None:
    first = Cause(topic="orders", offset=1, message="first").headers()
    second = Cause(topic="orders.retry", offset=2, message="second").headers()
    assert cause_of([*first, *second]).message == "second"
    assert own_headers([*first, ("trace", b"1"), *second]) == [("trace", b"1")]


def test_a_long_reason_is_cut() -> None:
    headers = dict(Cause(message="x" * 10_000).headers())
    (reason,) = headers.values()
    assert reason is not None and len(reason) == REASON_CHARACTERS_MAX


def test_headers_of_kafka_connect_are_understood() -> None:
    headers: list[tuple[str, bytes | None]] = [
        ("__connect.errors.topic", b"orders"),
        ("__connect.errors.partition", b"3"),
        ("__connect.errors.offset", b"17"),
        ("__connect.errors.connector.name", b"to-lake"),
        ("__connect.errors.task.id", b"0"),
        ("__connect.errors.stage", b"VALUE_CONVERTER"),
        ("__connect.errors.class.name", b"org.apache.kafka.connect.json.JsonConverter"),
        ("__connect.errors.exception.class.name", b"DataException"),
        ("__connect.errors.exception.message", None),
        ("mine", b"kept"),
    ]
    cause = cause_of(headers)
    assert (cause.origin, cause.pipeline, cause.error_class) == (
        "orders-3@17",
        "to-lake",
        "DataException",
    )
    assert own_headers(headers) == [("mine", b"kept")]


def test_a_number_that_is_none_is_not_known() -> None:
    cause = cause_of([("__connect.errors.topic", b"t"), ("__connect.errors.offset", b"soon")])
    assert (cause.offset, cause.origin) == (None, "t-?@?")
    assert cause_of([]).origin == "unknown"
