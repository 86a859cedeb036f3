"""The schema registry that topics are checked against, under the names of Confluent's broker."""

from typing import Final

from penstock.config.settings import (
    ACTS,
    INERT,
    INT,
    LIST,
    LOW,
    MEDIUM,
    PASSWORD,
    READ_ONLY,
    STRING,
    Bounds,
    Matching,
    OneOf,
    Setting,
)

_URL: Final = Matching(
    r"https?://[^/\s].*", "http://host:port, or several of them", "must be the URL of a registry"
)

# One setting, two lines: a table is read down its columns.
# fmt: off
SETTINGS: Final = (
    # Where it is.
    Setting("confluent.schema.registry.url", LIST, (), _URL, MEDIUM, READ_ONLY,
            ACTS, "The registry that topics are checked against; several are tried in turn."),
    Setting("confluent.basic.auth.credentials.source", STRING, "USER_INFO", OneOf("USER_INFO"),
            LOW, READ_ONLY,
            INERT, "Where the name and password for the registry come from."),
    Setting("confluent.basic.auth.user.info", PASSWORD, None, None, MEDIUM, READ_ONLY,
            ACTS, "The name and password for the registry, as user:password."),
    # How records are decoded.
    Setting("penstock.validation.workers", INT, 1, Bounds(1, 64), LOW, READ_ONLY,
            ACTS, "Processes that decode records for topics that ask for it."),
    Setting("penstock.validation.timeout.ms", INT, 10_000, Bounds(100, 300_000), LOW, READ_ONLY,
            ACTS, "How long decoding one batch may take before its process is ended."),
)
# fmt: on
