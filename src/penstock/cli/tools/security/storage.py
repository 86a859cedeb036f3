"""kafka-storage: make data directories ready, with credentials that brokers can start from."""

import argparse
import asyncio
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.cli.parser import ToolParser
from penstock.cli.zookeeper_credentials import alter_in_zookeeper, credential_text
from penstock.client.operations.scram_credentials import MECHANISMS, NewScramCredential
from penstock.config.broker import BrokerConfig
from penstock.config.properties import read_properties
from penstock.errors import CommandError
from penstock.protocol.primitives import uuid_from_text, uuid_text
from penstock.security.sasl.scram import ITERATIONS_MIN

_WORDS: Final = ("format", "random-uuid", "info")
_SCRAM: Final = re.compile(r"(SCRAM-SHA-(?:256|512))=\[(.*)\]", re.DOTALL)
_FIELDS: Final = re.compile(r"(name|iterations|password)=(\"[^\"]*\"|[^,]*)(?:,|$)")
_META: Final = "meta.properties"


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    if options.word == "random-uuid":
        print(_random_uuid())
        return 0
    if options.config is None:
        parser.error(parser.missing.format("config"))
    config = BrokerConfig(read_properties(Path(options.config)))
    if options.word == "info":
        return _info(config)
    if options.cluster_id is None:
        parser.error(parser.missing.format("cluster-id"))
    return _format(config, options)


def _random_uuid() -> str:
    while (text := uuid_text(secrets.token_bytes(16))).startswith("-"):
        pass
    return text


def _info(config: BrokerConfig) -> int:
    for directory in config.log_dirs:
        state = "formatted" if _is_formatted(Path(directory)) else "not formatted"
        print(f"{directory} is {state}.")
    return 0


def _format(config: BrokerConfig, options: argparse.Namespace) -> int:
    cluster_id = _cluster_id(options.cluster_id)
    users = [parse_scram(text) for text in options.add_scram]
    directory = Path(config.log_dirs[0])
    if _is_formatted(directory):
        if not options.ignore_formatted:
            raise CommandError(
                f"Log directory {directory} is already formatted. Use --ignore-formatted to "
                "ignore this directory and format the others."
            )
        print("All of the log directories are already formatted.")
        return 0
    if config.zookeeper_connect:
        _store_in_zookeeper(config.zookeeper_connect, users)
    else:
        print(f"Formatting metadata directory {directory}.")
        directory.mkdir(parents=True, exist_ok=True)
        asyncio.run(_store_here(directory, cluster_id, users))
    return 0


def _store_in_zookeeper(address: str, users: Sequence[tuple[str, NewScramCredential]]) -> None:
    """The directories of a cluster's brokers need no making ready; its credentials do."""
    for user, credential in users:
        if not alter_in_zookeeper(address, user, [credential], ()):
            raise CommandError(f"No ZooKeeper answers at {address} (zookeeper.connect).")
        print(f"Wrote {credential.mechanism} of user {user} to ZooKeeper at {address}.")


async def _store_here(
    directory: Path, cluster_id: str, users: Sequence[tuple[str, NewScramCredential]]
) -> None:
    from penstock.cluster.registration import prepare_tree
    from penstock.cluster.stored_credentials import store_credentials
    from penstock.config.processes import METADATA_FILE
    from penstock.meta.sqlite.store import SqliteStore

    store = await SqliteStore.open(directory / METADATA_FILE)
    try:
        await prepare_tree(store, cluster_id=cluster_id)
        for user, credential in users:
            await store_credentials(
                store, user, {credential.mechanism: credential_text(credential)}
            )
    finally:
        await store.close()


def _is_formatted(directory: Path) -> bool:
    from penstock.config.processes import METADATA_FILE

    return (directory / _META).exists() or (directory / METADATA_FILE).exists()


def _cluster_id(text: str) -> str:
    try:
        is_uuid = len(uuid_from_text(text)) == 16
    except ValueError:
        is_uuid = False
    if not is_uuid:
        raise CommandError(
            f"Cluster ID string {text} does not appear to be a valid UUID: make one with "
            "`kafka-storage random-uuid`."
        )
    return text


def parse_scram(text: str) -> tuple[str, NewScramCredential]:
    """`SCRAM-SHA-256=[name=alice,iterations=8192,password=secret]`: the user and the credential."""
    found = _SCRAM.fullmatch(text.strip())
    fields = {m[1]: m[2].strip('"') for m in _FIELDS.finditer(found[2])} if found else {}
    if found is None or not fields.get("name") or not fields.get("password"):
        raise CommandError(
            "--add-scram must be written as 'SCRAM-SHA-256=[name=alice,password=...]', with "
            f"{' or '.join(MECHANISMS)}."
        )
    iterations = fields.get("iterations", str(ITERATIONS_MIN))
    if not iterations.isdecimal():
        raise CommandError(f"--add-scram: iterations must be a number, not {iterations!r}.")
    return fields["name"], NewScramCredential(
        mechanism=found[1], password=fields["password"], iterations=int(iterations)
    )


def _parser() -> ToolParser:
    parser = ToolParser("kafka-storage", "The Kafka storage tool.")
    option = parser.add_argument
    option("word", choices=_WORDS, help="What to do.")
    option("--config", "-c", metavar="file", help="The server.properties of the broker.")
    option("--cluster-id", "-t", metavar="id", help="The id of the new cluster.")
    option(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="credential",
        help="A credential to begin with: 'SCRAM-SHA-256=[name=alice,password=alice-secret]'.",
    )
    parser.flag("ignore-formatted", "Pass over directories that are formatted already.")
    return parser
