"""Settings of Confluent's that are not served: refused where they would matter."""

import pytest

from penstock.connect.connectors.jdbc.sink import JdbcSinkConnector
from penstock.connect.connectors.jdbc.source import JdbcSourceConnector
from penstock.errors import ConfigError

SOURCE = {"connection.url": "jdbc:sqlite:x", "mode": "bulk", "topic.prefix": "p", "query": "q"}
SINK = {"connection.url": "jdbc:sqlite:x"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("schema.pattern", "shop"), ("db.timezone", "Europe/Rome"), ("table.poll.interval.ms", "5")],
)
def test_a_setting_that_would_be_ignored_is_refused_with_its_name(name: str, value: str) -> None:
    given = {**SOURCE, name: value}
    errors = JdbcSourceConnector.validate(given).errors()
    assert errors == {"connection.url": (f"The setting {name} is not served here; take it out.",)}
    with pytest.raises(ConfigError, match=name):
        JdbcSourceConnector().start(given)


def test_what_confluent_does_by_itself_may_be_written() -> None:
    harmless = {"db.timezone": "utc", "validate.non.null": "true", "dialect.name": ""}
    assert JdbcSourceConnector.validate({**SOURCE, **harmless}).error_count == 0
    JdbcSourceConnector().start({**SOURCE, **harmless})


def test_the_sink_has_its_own() -> None:
    given = {**SINK, "dialect.name": "OracleDatabaseDialect"}
    assert "dialect.name" in str(JdbcSinkConnector.validate(given).errors())
    with pytest.raises(ConfigError, match=r"dialect\.name"):
        JdbcSinkConnector().start(given)
    JdbcSinkConnector().start({**SINK, "quote.sql.identifiers": "always"})
