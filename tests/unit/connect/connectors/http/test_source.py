"""The settings of an HTTP source: all errors at once, and parts shared out among tasks."""

import pytest

from penstock.connect.connectors.http.source import HttpSourceConnector
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.testing import refused_settings

GOOD = {"url": "http://h/x?after=${offset}", "topic.name.pattern": "t"}


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({}, []),
        ({"url": "ftp://h/${offset}", "http.offset.mode": "x"}, ["http.offset.mode", "url"]),
        ({"url": "http://h/"}, ["url"]),
        ({"http.offset.mode": "CHAINING"}, ["http.offset.json.pointer"]),
        ({"http.offset.mode": "CURSOR_PAGINATION"}, ["http.next.page.json.pointer"]),
        ({"http.initial.offset": "x"}, ["http.initial.offset"]),
        ({"entity.names": "a,b"}, ["entity.names"]),
        ({"auth.type": "BASIC", "headers": "nothing"}, ["connection.user", "headers"]),
        ({"auth.type": "BEARER"}, ["bearer.token"]),
        (
            {"retry.on.status.codes": "x", "max.retries": "-1"},
            ["max.retries", "retry.on.status.codes"],
        ),
        ({"http.response.data.json.pointer": "x"}, ["http.response.data.json.pointer"]),
        ({"https.ssl.truststore.location": "/no.pem"}, ["https.ssl.truststore.location"]),
    ],
)
def test_all_that_is_wrong_is_told_at_once(config: dict[str, str], names: list[str]) -> None:
    assert sorted(refused_settings(HttpSourceConnector, GOOD | config)) == names


def test_entities_are_dealt_out() -> None:
    connector = HttpSourceConnector()
    connector.start(GOOD | {"url": "http://h/${entityName}/${offset}", "entity.names": "a,b,c"})
    assert [one["entity.names"] for one in connector.task_configs(2)] == ["a,c", "b"]
    assert [one["entity.names"] for one in connector.task_configs(9)] == ["a", "b", "c"]


def test_offsets_that_cannot_be_used_are_refused() -> None:
    connector = HttpSourceConnector()
    named = frozenset({("url", "u"), ("entity", "")})
    assert connector.alter_offsets(GOOD, {named: {"offset": "3"}, frozenset(): None})
    for partition, offset in ((named, {"offset": 3}), (frozenset(), {"offset": "3"})):
        with pytest.raises(ConnectError):
            connector.alter_offsets(GOOD, {partition: offset})
