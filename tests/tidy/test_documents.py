"""Documents that come out of tables are as the tables say, and every dependency has its reason."""

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCREEN_LINES = 60


def generator() -> ModuleType:
    """scripts/generate_docs.py as a module."""
    path = ROOT / "scripts" / "generate_docs.py"
    spec = importlib.util.spec_from_file_location("generate_docs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dependencies() -> list[str]:
    """The names of what the package needs to run."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [re.split(r"[\s<>=!~\[;]", text)[0] for text in project["dependencies"]]


@pytest.mark.parametrize("name", ["settings.md", "support.md", "api.md"])
def test_generated_documents_are_up_to_date(name: str) -> None:
    expected = generator().documents()[name]
    assert (ROOT / "docs" / name).read_text() == expected, "run `make docs`"


@pytest.mark.parametrize("name", dependencies())
def test_every_runtime_dependency_has_a_decision_record(name: str) -> None:
    records = (ROOT / "docs" / "adr").glob("[0-9]*.md")
    assert any(name in path.read_text() for path in records)


def test_decision_records_are_numbered_without_a_gap_and_say_the_same_four_things() -> None:
    records = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        headings = re.findall(r"^## (.+)$", path.read_text(), re.MULTILINE)
        assert headings == ["Why", "Decision", "Instead of", "What follows"], path.name


def test_a_decision_record_fits_one_screen() -> None:
    records = (ROOT / "docs" / "adr").glob("[0-9]*.md")
    lines = {path.name: path.read_text().count("\n") for path in records}
    assert {name: count for name, count in lines.items() if count > SCREEN_LINES} == {}


def test_constraints_pin_every_dependency_exactly() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.partition("==")[0] for line in lines if line and not line.startswith("#")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = dependencies() + [
        re.split(r"[\s<>=!~\[;]", text)[0] for text in project["optional-dependencies"]["dev"]
    ]
    assert sorted(set(wanted) - pinned) == []


def glossary() -> list[tuple[str, str]]:
    """Each word of the glossary, with the file that it names."""
    lines = (ROOT / "docs" / "glossary.md").read_text().splitlines()
    rows = [[cell.strip(" *`") for cell in line.split("|")] for line in lines if "| `" in line]
    return [(row[1].replace("*", "").lower(), row[3]) for row in rows]


def test_the_glossary_is_in_order_and_names_files_that_exist() -> None:
    words = [word for word, _ in glossary()]
    assert words == sorted(set(words)) and len(words) > 50
    assert [file for _, file in glossary() if not (ROOT / "src/penstock" / file).is_file()] == []
