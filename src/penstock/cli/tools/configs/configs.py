"""kafka-configs: show and change settings of topics, brokers and groups, and quotas of clients."""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.cli.bootstrap import add_bootstrap, add_command_config, admin_of
from penstock.cli.parser import ToolParser
from penstock.cli.sentences import told_after
from penstock.cli.tools.configs import credentials
from penstock.cli.tools.configs import quotas as configs_quotas
from penstock.cli.tools.configs import resources as configs_resources
from penstock.cli.tools.configs.entities import QUOTA_TYPES, Entity, entities_of
from penstock.cli.tools.configs.shown_words import shown
from penstock.client.admin import Admin
from penstock.client.errors import ClientError
from penstock.config.properties import read_properties
from penstock.errors import CommandError, ProtocolError


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    entities = _checked(parser, options)
    if _is_for_zookeeper(options, entities) and _alter_stored(options, entities[0]):
        return 0
    opening = f"Error while executing config command with args '{' '.join(shown(argv))}': "
    # What this tool refuses by itself is told as it is, as by Kafka's.
    refusals = (ProtocolError, ClientError)
    with admin_of(parser, options) as admin, told_after(opening, errors=refusals, words=str):
        of_quotas = entities[0].type in QUOTA_TYPES
        if options.describe and of_quotas:
            configs_quotas.describe(admin, entities)
            credentials.describe(admin, entities)
        elif options.describe:
            configs_resources.describe(admin, entities[0], everything=options.all)
        elif of_quotas:
            _alter_clients(admin, entities, *_changes(options))
        else:
            configs_resources.alter(admin, entities[0], *_changes(options))
    return 0


def _is_for_zookeeper(options: argparse.Namespace, entities: Sequence[Entity]) -> bool:
    """Whether it is what ZooKeeper must have before a first broker can start: credentials."""
    if not options.zookeeper or options.bootstrap_server or not options.alter:
        return False
    changed = [key for keys in _changes(options) for key in keys]
    is_of_user = len(entities) == 1 and entities[0].type == "users" and bool(entities[0].name)
    return is_of_user and all(map(credentials.is_credential, changed))


def _alter_stored(options: argparse.Namespace, entity: Entity) -> bool:
    """Whether a ZooKeeper took it; old texts may name a broker in its place."""
    from penstock.cli.zookeeper_credentials import alter_in_zookeeper

    added, deleted = _changes(options)
    wanted = [credentials.parse_credential(name, value) for name, value in added.items()]
    if not alter_in_zookeeper(options.zookeeper, entity.name or "", wanted, deleted):
        return False
    print(configs_resources.completed(entity))
    return True


def _alter_clients(
    admin: Admin, entities: Sequence[Entity], added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Quotas go with one request and credentials with another."""
    is_credential = credentials.is_credential
    for of_credentials, alter in ((False, configs_quotas.alter), (True, credentials.alter)):
        to_add = {key: text for key, text in added.items() if is_credential(key) is of_credentials}
        to_delete = [key for key in deleted if is_credential(key) is of_credentials]
        if to_add or to_delete:
            alter(admin, entities, to_add, to_delete)
    print(configs_resources.completed(entities[-1]))


def parse_added(text: str) -> dict[str, str]:
    """`k1=v1,k2=[v1,v2],k3=v3`: square brackets hold together what commas would split."""
    added: dict[str, str] = {}
    for word in re.split(r",(?=[^\]]*(?:\[|$))", text):
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise CommandError(  # Without the word, which may be a piece of a password.
                "Invalid entity config: all configs to be added must be in the format "
                '"key=val" or "key=[val1,val2]" to group values which contain commas.'
            )
        value = value.strip()
        if value.startswith("[") and value.endswith("]"):
            value = value[1:-1]
        added[key.strip()] = value
    return added


def _changes(options: argparse.Namespace) -> tuple[dict[str, str], list[str]]:
    added = read_properties(Path(options.add_config_file)) if options.add_config_file else {}
    if options.add_config:
        added.update(parse_added(options.add_config))
    deleted = [
        key.strip() for word in options.delete_config for key in word.split(",") if key.strip()
    ]
    both = sorted(set(added) & set(deleted))
    if both:
        raise CommandError(f"{both[0]} is both added and deleted.")
    return added, deleted


def _checked(parser: ToolParser, options: argparse.Namespace) -> list[Entity]:
    if bool(options.alter) == bool(options.describe):
        parser.error("Command must include exactly one action: --describe, --alter")
    entities = entities_of(options, parser.error)
    if options.alter:
        if not (options.add_config or options.add_config_file or options.delete_config):
            parser.error(
                "At least one of --add-config, --add-config-file, or --delete-config must be "
                "specified with --alter"
            )
        unnamed = [entity for entity in entities if entity.covers_all]
        if unnamed:
            parser.error(f"An entity name must be specified with --alter of {unnamed[0].type}")
    if options.add_config and options.add_config_file:
        parser.error("Only one of --add-config or --add-config-file must be specified")
    return entities


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-configs",
        "This tool helps to manipulate and describe entity config for a topic, client, user, "
        "broker, ip, client-metrics or group",
    )
    add_bootstrap(parser, zookeeper=True)
    add_command_config(parser)
    flag, option = parser.flag, parser.add_argument
    flag("alter", "Alter the configuration for the entity.")
    flag("describe", "List configs for the given entity.")
    flag("all", "List all configs for the given entity, including static configs if available.")
    flag("force", "Suppress console prompts; accepted for old scripts.")
    option(
        "--entity-type",
        action="append",
        default=[],
        help="Type of entity (topics/clients/users/brokers/broker-loggers/ips/client-metrics/"
        "groups).",
    )
    option("--entity-name", action="append", default=[], help="Name of entity.")
    flag("entity-default", "Default entity name for clients/users/brokers/ips.")
    option(
        "--add-config",
        metavar="k1=v1,k2=[v1,v2],...",
        help="Key Value pairs of configs to add. Square brackets can be used to group values "
        "which contain commas: 'k1=v1,k2=[v1,v2,v2],k3=v3'.",
    )
    option("--add-config-file", metavar="file", help="A properties file with configs to add.")
    option(
        "--delete-config",
        "--deleteConfig",
        action="append",
        default=[],
        metavar="k1,k2",
        help="config keys to remove 'k1,k2'",
    )
    option("--topic", metavar="name", help="The topic's name.")
    option("--broker", metavar="id", help="The broker's ID.")
    option("--broker-logger", metavar="id", help="The broker's ID for its logger config.")
    option("--client", metavar="name", help="The client's ID.")
    option("--user", metavar="name", help="The user's principal name.")
    option("--ip", metavar="address", help="The IP address.")
    option("--group", metavar="id", help="The group's ID.")
    option("--client-metrics", metavar="name", help="The client metrics config resource name.")
    flag("broker-defaults", "The config defaults for all brokers.")
    flag("client-defaults", "The config defaults for all clients.")
    flag("user-defaults", "The config defaults for all users.")
    flag("ip-defaults", "The config defaults for all IPs.")
    return parser
