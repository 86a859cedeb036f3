"""docs/settings.md says of every setting what the tables say."""

from penstock.config.broker import BROKER_SETTINGS
from penstock.config.documented import settings_document
from penstock.config.group import GROUP_SETTINGS
from penstock.config.topic import TOPIC_SETTINGS


def rows() -> list[list[str]]:
    lines = settings_document().splitlines()
    return [[cell.strip() for cell in line[1:-1].split(" | ")] for line in lines if line[:1] == "|"]


def test_every_setting_has_a_row_and_hidden_ones_have_none() -> None:
    named = {row[0].strip("`") for row in rows()}
    for table in (BROKER_SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS):
        assert {name for name, setting in table.items() if not setting.internal} <= named
    assert "internal.segment.bytes" not in named
    assert "producer_byte_rate" in named


def test_a_row_says_whether_a_setting_acts_and_how_it_changes() -> None:
    found = {row[0]: row for row in rows() if row[-2] in ("restart", "cluster", "per broker")}
    assert found["`log.segment.bytes`"] == [
        "`log.segment.bytes`",
        "int",
        "`1073741824`",
        "[1048576,...]",
        "The size at which a segment is full and the next begins.",
        "cluster",
        "yes",
    ]
    assert found["`num.io.threads`"][-1] == "no"
    assert found["`broker.id`"][-2] == "restart"


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    widths: set[int] = set()
    for row in rows():
        if row[0] == "Name":
            widths = {len(row)}
        assert {len(row)} == widths, row
