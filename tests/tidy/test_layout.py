"""Folders a reader can take in at a glance, and a unit test where its module says it is."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "penstock"
UNIT_TESTS = ROOT / "tests" / "unit"
MODULES_MAX = 20
ALIKE_MAX = 3
# One file for each of Kafka's APIs, under its name: to be looked up, not to be read in a row.
CATALOGUES = {Path("protocol/messages"), Path("broker/handlers")}
WHOLE = "whole"


def modules_of(folder: Path) -> list[str]:
    """The names of the modules side by side in a folder."""
    return sorted(p.stem for p in folder.glob("*.py") if not p.stem.startswith("__"))


def packages() -> dict[Path, list[str]]:
    """Every package by its path below `penstock`, with its modules."""
    folders = {p.parent for p in PACKAGE.rglob("*.py")}
    return {folder.relative_to(PACKAGE): modules_of(folder) for folder in sorted(folders)}


def mirrors(test: Path, known: dict[Path, list[str]]) -> bool:
    """Whether a unit test, by its path below `tests/unit`, is one of a module or of a package."""
    folder, name = test.parent, test.stem.removeprefix("test_")
    return (
        name in known.get(folder, [])
        or folder.name in known.get(folder.parent, [])
        or (folder.name == WHOLE and folder.parent in known)
    )


def test_every_unit_test_lies_where_its_module_does() -> None:
    known = packages()
    tests = sorted(p.relative_to(UNIT_TESTS) for p in UNIT_TESTS.rglob("test_*.py"))
    assert [str(test) for test in tests if not mirrors(test, known)] == []


def test_a_folder_of_tests_is_either_a_packages_or_a_modules() -> None:
    """`log/test_a.py` would be a test of module `a` and one of an aspect of module `log`."""
    known = packages()
    both = [str(p / name) for p, names in known.items() for name in names if p / name in known]
    named_whole = [str(p) for p, names in known.items() if p.name == WHOLE or WHOLE in names]
    assert (both, named_whole) == ([], [])


def test_every_handler_has_its_test() -> None:
    handlers = Path("broker/handlers")
    tested = {p.stem.removeprefix("test_") for p in (UNIT_TESTS / handlers).glob("test_*.py")}
    assert sorted(set(packages()[handlers]) - tested) == []


def test_no_folder_holds_more_than_can_be_taken_in() -> None:
    crowded = {
        str(path): len(names)
        for path, names in packages().items()
        if path not in CATALOGUES and len(names) > MODULES_MAX
    }
    assert crowded == {}


def test_no_prefix_does_a_folders_work() -> None:
    alike = {
        f"{path}/{prefix}_*": count
        for path, names in packages().items()
        if path not in CATALOGUES
        for prefix, count in Counter(name.split("_")[0] for name in names).items()
        if count > ALIKE_MAX
    }
    assert alike == {}
