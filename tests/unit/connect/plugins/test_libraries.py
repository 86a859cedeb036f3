"""A connector whose library is not there says so, with the command that installs it."""

from penstock.connect.plugins.libraries import missing_libraries


class WithNothing:
    """Needs what every Python has."""

    libraries = {"json": "json", "importlib.metadata": "metadata"}  # noqa: RUF012


class Wanting:
    """Needs a module, and one in a package, that nobody has."""

    libraries = {"no_such_thing": "thing", "no_such_pack.part": "pack"}  # noqa: RUF012


class Ours(Wanting):
    """As if it were one of the house."""


Ours.__module__ = "penstock.connect.connectors.thing.source"


def test_what_is_there_is_not_mentioned() -> None:
    assert missing_libraries(WithNothing) == []
    assert missing_libraries(object) == []


def test_each_missing_library_is_named_with_its_command() -> None:
    assert missing_libraries(Wanting) == [
        "The connector needs thing, which is not installed here. Run: pip install thing",
        "The connector needs pack, which is not installed here. Run: pip install pack",
    ]


def test_those_of_the_house_are_in_one_extra() -> None:
    assert all(
        line.endswith("Run: pip install 'penstock[connectors]'") for line in missing_libraries(Ours)
    )
