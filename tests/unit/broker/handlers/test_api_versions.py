"""ApiVersions: what this broker speaks, and the features of its cluster."""

from typing import Any

import pytest
from tests.unit.broker.conftest import Served

from penstock.broker.dispatch import HANDLERS
from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey, supported_versions
from penstock.protocol.messages.api_versions import ApiVersionsRequest


def named(name: str = "apache-kafka-java", version: str = "4.3.1") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", supported_versions(ApiKey.API_VERSIONS))
def test_every_version_tells_what_is_served_and_nothing_else(served: Served, version: int) -> None:
    answer = served.ask(named(), version)
    assert answer.error_code == ErrorCode.NONE
    told = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
    assert list(told) == sorted(HANDLERS)
    assert told[ApiKey.PRODUCE][0] == 0  # Old clients take a higher one for a broker too new.
    for key, (lowest, highest) in told.items():
        assert lowest == supported_versions(key)[0]
        assert lowest <= highest <= supported_versions(key)[-1]


@pytest.mark.parametrize("name", ["", "-kafka", "kafka.", "two words", "a\nb", "ä", "a/b"])
@pytest.mark.parametrize("version", [3, 4])
def test_a_name_that_would_spoil_logs_and_metrics_is_refused(
    served: Served, version: int, name: str
) -> None:
    for request in (named(name=name), named(version=name)):
        answer = served.ask(request, version)
        assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])
        assert answer.finalized_features == []


@pytest.mark.parametrize("name", ["a", "librdkafka", "confluent-kafka-python", "v1.2-rc.3"])
def test_a_plain_name_is_let_in(served: Served, name: str) -> None:
    assert served.ask(named(name, name), 3).error_code == ErrorCode.NONE


def test_before_version_3_nobody_has_a_name(served: Served) -> None:
    answer = served.ask(ApiVersionsRequest(), 2)
    assert answer.error_code == ErrorCode.NONE
    assert (answer.supported_features, answer.finalized_features) == ([], [])


def test_the_feature_is_announced(grouped: Any) -> None:
    request = ApiVersionsRequest(client_software_name="n", client_software_version="1")
    told = grouped.ask(request, 4)
    levels = {feature.name: feature.max_version_level for feature in told.finalized_features}
    assert levels["group.version"] == 1


def test_clients_are_told_of_transaction_version_2(served: Any) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = served.ask(request, 4)
    supported = {f.name: (f.min_version, f.max_version) for f in answer.supported_features}
    finalized = {f.name: f.max_version_level for f in answer.finalized_features}
    assert supported["transaction.version"] == (0, 2)
    assert finalized["transaction.version"] == 2
    assert answer.finalized_features_epoch >= 0
    older = served.ask(request, 3)
    assert all(feature.min_version > 0 for feature in older.supported_features)
    assert {f.name: f.max_version_level for f in older.finalized_features} == finalized
