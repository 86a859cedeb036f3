"""Settings of HDFS's sink and source, by Confluent's names."""

import re
from collections.abc import Mapping
from typing import Any

from penstock.connect.connectors.hdfs.local_store import LocalStore
from penstock.connect.connectors.hdfs.web_store import WebHdfsStore
from penstock.connect.connectors.objects.kinds import StoreKind
from penstock.connect.connectors.objects.store import ObjectStore
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import Judged

_WEB = re.compile(r"s?webhdfs://[^/\s]+(/\S*)?")
_FILE = re.compile(r"file:(//)?/.*")


def _is_url(value: Any) -> str | None:
    if value and (_WEB.fullmatch(value) or _FILE.fullmatch(value)):
        return None
    if value and value.startswith("hdfs://"):
        return "HDFS is reached by WebHDFS: webhdfs:// with the NameNode's HTTP port (9870)"
    return "Must be webhdfs://host:port/folder, swebhdfs://... or file:///folder"


_CONFIG = ConfigDef(
    ConfigEntry(
        "hdfs.url",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "The NameNode by its HTTP port, webhdfs://namenode:9870 and a folder, or file:///folder.",
        validator=Judged(_is_url, "a URL"),
    ),
    ConfigEntry(
        "hdfs.user",
        ConfigType.STRING,
        "",
        Importance.MEDIUM,
        "The user that a NameNode with simple authentication is told.",
    ),
)


def _store(config: Mapping[str, Any]) -> ObjectStore:
    """The store of `hdfs.url`."""
    url = config["hdfs.url"]
    if url.startswith("file:"):
        return LocalStore(url.removeprefix("file:").replace("//", "/", 1))
    return WebHdfsStore(url, config["hdfs.user"])


HDFS = StoreKind(name="hdfs", config=_CONFIG, place="hdfs.url", opened=_store)
