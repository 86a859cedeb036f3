"""kafka-configs: whose settings, which changes, and its lines."""

import pytest

from penstock.cli.tools.configs import configs
from penstock.cli.tools.configs.configs import parse_added
from penstock.cli.tools.configs.entities import Entity
from penstock.cli.tools.configs.quotas import quota_line
from penstock.cli.tools.configs.resources import completed, entry_line, is_own, title
from penstock.client.operations.configs import ConfigEntry, ConfigSource, ConfigSynonym
from penstock.errors import CommandError


def entities(*argv: str) -> list[Entity]:
    parser = configs._parser()
    return configs._checked(parser, parser.parse(argv))


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=[x,y],b=2", {"a": "x,y", "b": "2"}),
        ("a=x=y", {"a": "x=y"}),
        ("a=,b=[]", {"a": "", "b": ""}),
    ],
)
def test_brackets_hold_together_what_commas_would_split(text: str, added: dict[str, str]) -> None:
    assert parse_added(text) == added


def test_an_addition_without_a_value_is_told() -> None:
    with pytest.raises(CommandError, match='must be in the format "key=val"'):
        parse_added("a=1,b")


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["--entity-type", "topics", "--entity-name", "t"], [Entity("topics", "t")]),
        (["--topic", "t"], [Entity("topics", "t")]),
        (["--entity-type", "topics"], [Entity("topics", None)]),
        (["--broker", "1"], [Entity("brokers", "1")]),
        (["--broker-defaults"], [Entity("brokers", "")]),
        (["--entity-type", "brokers", "--entity-default"], [Entity("brokers", "")]),
        (["--user", "u", "--client", "c"], [Entity("users", "u"), Entity("clients", "c")]),
        (
            [
                "--entity-type",
                "users",
                "--entity-name",
                "u",
                "--entity-type",
                "clients",
                "--entity-default",
            ],
            [Entity("users", "u"), Entity("clients", "")],
        ),
    ],
)
def test_entities_are_found_however_they_are_written(argv: list[str], found: list[Entity]) -> None:
    assert entities("--describe", *argv) == found


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--describe"], "At least one entity type must be specified"),
        (["--topic", "t"], "Command must include exactly one action"),
        (["--describe", "--entity-type", "zork"], "Invalid entity type zork"),
        (["--describe", "--topic", "t", "--broker", "1"], "Only 'users' and 'clients'"),
        (["--describe", "--broker", "x"], "The entity name for brokers must be a valid integer"),
        (["--describe", "--entity-type", "topics", "--entity-default"], "--entity-default must"),
        (["--describe", "--entity-type", "broker-loggers"], "An entity name must be specified"),
        (["--alter", "--topic", "t"], "At least one of --add-config"),
        (["--alter", "--entity-type", "topics", "--add-config", "a=b"], "An entity name must"),
    ],
)
def test_a_wrong_command_line_is_refused(
    capsys: pytest.CaptureFixture[str], argv: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit):
        entities(*argv)
    assert capsys.readouterr().err.startswith(sentence)


def entry(source: ConfigSource, value: str | None = "5", sensitive: bool = False) -> ConfigEntry:
    return ConfigEntry(
        name="retention.ms",
        value=value,
        source=source,
        is_sensitive=sensitive,
        is_read_only=False,
        synonyms=(
            ConfigSynonym(name="retention.ms", value="5", source=ConfigSource.DYNAMIC_TOPIC_CONFIG),
            ConfigSynonym(name="log.retention.ms", value=None, source=ConfigSource.DEFAULT_CONFIG),
        ),
    )


def test_the_line_of_a_setting() -> None:
    assert entry_line(entry(ConfigSource.DYNAMIC_TOPIC_CONFIG)) == (
        "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5, "
        "DEFAULT_CONFIG:log.retention.ms=null}"
    )
    secret = entry(ConfigSource.DYNAMIC_TOPIC_CONFIG, None, True)
    assert entry_line(secret).startswith("  retention.ms=null sensitive=true ")


def test_titles_and_conclusions() -> None:
    topic, default = Entity("topics", "t"), Entity("brokers", "")
    assert title(topic, everything=False) == "Dynamic configs for topic t are:"
    assert title(topic, everything=True) == "All configs for topic t are:"
    assert title(default, everything=False) == "Default configs for brokers in the cluster are:"
    assert completed(topic) == "Completed updating config for topic t."
    assert completed(default) == "Completed updating default config for brokers in the cluster."


def test_only_what_was_set_for_the_entity_is_its_own() -> None:
    assert is_own(entry(ConfigSource.DYNAMIC_TOPIC_CONFIG), Entity("topics", "t"))
    assert not is_own(entry(ConfigSource.STATIC_BROKER_CONFIG), Entity("topics", "t"))
    cluster_wide = entry(ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    assert is_own(cluster_wide, Entity("brokers", ""))
    assert not is_own(cluster_wide, Entity("brokers", "1"))


def test_the_line_of_a_quota() -> None:
    entity = (("client-id", "c1"), ("user", "alice"))
    assert quota_line(entity, {"producer_byte_rate": 1024.0}) == (
        "Quota configs for user-principal 'alice', client-id 'c1' are producer_byte_rate=1024.0"
    )
    assert quota_line((("user", None),), {"b": 2.0, "a": 1.0}) == (
        "Quota configs for the default user-principal are a=1.0, b=2.0"
    )
