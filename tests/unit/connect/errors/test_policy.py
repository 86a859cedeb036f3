"""What `errors.*` says: which failures are retried, for how long, and which are skipped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.connect.errors.policy import ErrorPolicy, is_retriable, is_tolerable
from penstock.errors import ConfigError
from penstock.schemas.dead_letters import FailureStage
from penstock.schemas.registry_client import RegistryUnreachable


def test_nothing_is_tolerated_by_default() -> None:
    policy = ErrorPolicy.of({})
    assert policy == ErrorPolicy()
    assert policy.pause_ms(1, began_ms=0, now_ms=0) is None


def test_settings_are_read_under_kafkas_names() -> None:
    policy = ErrorPolicy.of(
        {
            "errors.tolerance": "all",
            "errors.retry.timeout": "1000",
            "errors.retry.delay.max.ms": "500",
            "errors.log.enable": "true",
            "errors.deadletterqueue.topic.name": "dead",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
    )
    assert policy.tolerates
    assert policy.dead_letter_topic == "dead"
    assert policy.with_context


def test_a_wrong_tolerance_is_refused() -> None:
    with pytest.raises(ConfigError, match="String must be one of: none, all"):
        ErrorPolicy.of({"errors.tolerance": "some"})


def test_pauses_double_up_to_the_longest_and_end_with_the_time() -> None:
    policy = ErrorPolicy(retry_timeout_ms=5_000, retry_delay_max_ms=1_000)
    pauses = [policy.pause_ms(attempt, began_ms=0, now_ms=0) for attempt in range(1, 5)]
    assert pauses == [300, 600, 1_000, 1_000]
    assert policy.pause_ms(3, began_ms=0, now_ms=4_900) == 100
    assert policy.pause_ms(3, began_ms=0, now_ms=5_000) is None


@given(st.integers(1, 10_000), st.integers(0, 10**12))
def test_without_end_there_is_always_another_try(attempt: int, now_ms: int) -> None:
    pause = ErrorPolicy(retry_timeout_ms=-1).pause_ms(attempt, began_ms=0, now_ms=now_ms)
    assert pause is not None
    assert 0 < pause <= 60_000


def test_records_are_skipped_for_their_own_faults_alone() -> None:
    assert is_tolerable(FailureStage.TRANSFORMATION, DataError("x"))
    assert not is_tolerable(FailureStage.TASK_PUT, DataError("x"))
    assert is_tolerable(FailureStage.TRANSFORMATION, KeyError("no such field"))
    for error in (MemoryError(), OSError(), RegistryUnreachable("gone")):
        assert not is_tolerable(FailureStage.VALUE_CONVERTER, error)
    assert is_retriable(RetriableConnectError("x"))
    assert not is_retriable(ConnectError("x"))
