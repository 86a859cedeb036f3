"""Whose a log directory is: the `meta.properties` file, as Apache Kafka writes it.

Version 0 (brokers under ZooKeeper, and ours) has `broker.id`, version 1 (KRaft) `node.id`; both
have `cluster.id`, and `directory.id`, by which the cluster knows the disk again wherever it is
mounted.
"""

import os
import time
from pathlib import Path
from typing import Final, NamedTuple

from penstock.config.properties import format_properties, read_properties
from penstock.errors import ConfigError
from penstock.protocol.primitives import uuid_text
from penstock.storage.directories.durable_file import replace_file

FILE_NAME: Final = "meta.properties"
_ID_KEYS: Final = {"0": "broker.id", "1": "node.id"}


class DirectoryIdentity(NamedTuple):
    """What is known of a directory; None: it was never written down."""

    broker_id: int | None
    cluster_id: str | None
    directory_id: str | None
    version: str = "0"


NOBODYS: Final = DirectoryIdentity(None, None, None)


def read_identity(directory: Path) -> DirectoryIdentity:
    """What the directory says of itself; a new one says nothing."""
    path = directory / FILE_NAME
    if not path.exists():
        return NOBODYS
    properties = read_properties(path)
    version = properties.get("version", "")
    if version not in _ID_KEYS:
        raise ConfigError(
            f"log.dirs: {path} has version {version or 'none'}, and only 0 and 1 are known; "
            "the directory was written by another program"
        )
    number = properties.get(_ID_KEYS[version])
    if number is not None and not number.lstrip("-").isdecimal():
        raise ConfigError(f"log.dirs: {path} has the broker id {number}, which is not a number")
    return DirectoryIdentity(
        broker_id=None if number is None else int(number),
        cluster_id=properties.get("cluster.id"),
        directory_id=properties.get("directory.id"),
        version=version,
    )


def check_identity(
    directory: Path, known: DirectoryIdentity, *, broker_id: int, cluster_id: str
) -> None:
    """Refuse to write into the directory of another cluster or another broker."""
    if known.cluster_id not in (None, cluster_id):
        raise ConfigError(
            f"log.dirs: {directory} holds data of the cluster {known.cluster_id}, and this broker "
            f"belongs to {cluster_id}; choose another directory, or remove the data"
        )
    if known.broker_id not in (None, broker_id):
        raise ConfigError(
            f"log.dirs: {directory} holds data of broker {known.broker_id}, and broker.id is "
            f"{broker_id}; set broker.id={known.broker_id}, or choose another directory"
        )


def write_identity(directory: Path, identity: DirectoryIdentity, *, now_ms: int) -> None:
    values = {
        _ID_KEYS[identity.version]: str(identity.broker_id),
        "cluster.id": str(identity.cluster_id),
        "directory.id": str(identity.directory_id),
        "version": identity.version,
    }
    date = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(now_ms / 1000))
    replace_file(directory / FILE_NAME, f"#\n#{date}\n{format_properties(values)}")


def new_directory_id() -> str:
    """A random id; one that begins with a dash would look like an option on a command line."""
    while True:
        text = uuid_text(os.urandom(16))
        if not text.startswith("-"):
            return text
