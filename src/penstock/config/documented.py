"""docs/settings.md, written from the tables, so that it cannot say anything else than they do.

`python -m penstock.config.documented` prints it; a tidy test holds the file against this.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import Final

from penstock.config.broker import TABLES
from penstock.config.group import GROUP_SETTINGS
from penstock.config.quotas import ADDRESS_QUOTAS, CLIENT_QUOTAS
from penstock.config.settings import Setting, SettingTable, to_text
from penstock.config.topic import BROKER_NAMES, TOPIC_SETTINGS

_HEAD: Final = """\
# Settings

This page is written by `make docs` from the tables in `src/penstock/config`.

A broker reads its settings from a properties file and from `--override name=value`. A name it does
not know is a warning, a value it cannot take is a sentence and exit code 1. Names, types, defaults
and bounds are those of Apache Kafka, so a `server.properties` can be used as it is. **Acts** says
whether a setting changes what the broker does today; the others are taken, printed and described,
so that files and tools written for Kafka work, and change nothing yet. **Change** says whether
`kafka-configs` can change a setting of a running broker: not at all (a restart is needed), for one
broker, or for the cluster.
"""

_CHANGE: Final = {
    "read-only": "restart",
    "per-broker": "per broker",
    "cluster-wide": "cluster",
}


def settings_document() -> str:
    """The whole page."""
    return "".join(_parts())


def _parts() -> Iterator[str]:
    yield _HEAD
    yield "\n## Brokers\n"
    for table in TABLES:
        yield f"\n### {_title(table.__doc__)}\n\n"
        yield _broker_rows(table.SETTINGS)
    yield "\n## Topics\n\nWhat a topic does not set follows the broker's setting named with it.\n\n"
    yield _topic_rows()
    yield "\n## Groups\n\nWhat a group does not set follows the broker's `group.` and the name.\n\n"
    yield _plain_rows(GROUP_SETTINGS)
    yield "\n## Quotas of users and clients\n\n"
    yield _plain_rows(CLIENT_QUOTAS)
    yield "\n## Quotas of addresses\n\n"
    yield _plain_rows(ADDRESS_QUOTAS)


def _title(docstring: str | None) -> str:
    return (docstring or "").partition("\n")[0].rstrip(".")


def _broker_rows(settings: Iterable[Setting]) -> str:
    rows = (
        (*_columns(setting), _CHANGE[setting.dynamic], _acts(setting))
        for setting in settings
        if not setting.internal
    )
    return _table(("Name", "Type", "Default", "Allowed", "What it does", "Change", "Acts"), rows)


def _topic_rows() -> str:
    rows = (
        (*_columns(setting), _code(BROKER_NAMES.get(name, "")), _acts(setting))
        for name, setting in sorted(TOPIC_SETTINGS.items())
        if not setting.internal
    )
    heads = ("Name", "Type", "Default", "Allowed", "What it does", "Broker's setting", "Acts")
    return _table(heads, rows)


def _plain_rows(table: SettingTable) -> str:
    rows = ((*_columns(setting), _acts(setting)) for _, setting in sorted(table.items()))
    return _table(("Name", "Type", "Default", "Allowed", "What it does", "Acts"), rows)


def _columns(setting: Setting) -> tuple[str, ...]:
    default = to_text(setting.default)
    shown = "" if default is None else _code(default.replace(",", ", "))
    allowed = "" if setting.valid is None else str(setting.valid)
    return (_code(setting.name), setting.type, shown, allowed, setting.text)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _acts(setting: Setting) -> str:
    return "yes" if setting.acts else "no"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


if __name__ == "__main__":
    sys.stdout.write(settings_document())
