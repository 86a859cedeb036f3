"""What TAB offers."""

import pytest

from penstock.sql.shell.completing import KnownNames, completions

NAMES = KnownNames(
    sources=("ORDERS", "USERS", "mixed"),
    functions=("UCASE", "UNIX_DATE", "URL_DECODE_PARAM"),
    topics=("orders-1",),
    queries=("CSAS_O_1",),
    variables=("who",),
    columns_of=lambda source: {"ORDERS": ("ID", "UNITS"), "USERS": ("ID", "NAME")}.get(source, ()),
)


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("he", ["help"]),
        ("SHOW QU", ["QUERIES"]),
        ("SELECT * FROM OR", ["ORDERS"]),
        ("SELECT * FROM mi", ["`mixed`"]),
        ("select * from us", ["users"]),
        ("INSERT INTO U", ["USERS"]),
        ("DESCRIBE U", ["USERS"]),
        ("DROP STREAM OR", ["ORDERS"]),
        ("PRINT ", ["'orders-1'"]),
        ("TERMINATE CS", ["CSAS_O_1"]),
        ("SELECT * FROM ORDERS WHERE UNIT", ["UNITS"]),
        ("SELECT * FROM ORDERS O WHERE O.", ["O.ID", "O.UNITS"]),
        ("SELECT * FROM ORDERS O JOIN USERS AS U ON U.N", ["U.NAME"]),
        ("SELECT UC", ["UCASE"]),
        ("SELECT 1 FROM ORDERS; SEL", ["SELECT"]),
        ("SELECT '${", ["${who}"]),
        ("output j", ["json"]),
        ("SELECT * FROM NOBODY", []),
    ],
)
def test_a_word_becomes_what_may_stand_there(text: str, offered: list[str]) -> None:
    assert completions(text, NAMES) == offered
