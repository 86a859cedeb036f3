"""The repository keeps its own rules: names, openings, sizes, nothing of anyone's desk in it."""

import ast
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINES_MAX = 600
# Tables are read by their rows, so they may be long.
TABLES = {Path("src/penstock/errors.py"), Path("src/penstock/config/tables")}
VAGUE = {"manager", "managers", "helper", "helpers", "util", "utils", "utility", "common", "misc"}
# Fine as part of a name (Kafka has internal topics), but not as the whole of it.
VAGUE_ALONE = {"base", "core", "internal", "stuff"}
# Names that two classes still share.
SHARED_NAMES: set[str] = set()
# Split, so that this file does not hold the words it looks for.
FOREIGN = [
    "/wo" + "rk/",
    "/tmp/" + "plan",
    "../sha" + "red",
    "sha" + "red/design",
    "sha" + "red/protocol",
    "pypi" + ".org",
    "npmjs" + ".",
    "repo.maven" + ".apache",
    "repo1" + ".maven",
    "deb.deb" + "ian.org",
    "work" + "place",
]


def python_files(*folders: str) -> list[Path]:
    """The Python files of the folders, by path from the root."""
    found = [p for folder in folders for p in (ROOT / folder).rglob("*.py")]
    return sorted(p.relative_to(ROOT) for p in found if "__pycache__" not in p.parts)


@cache
def tree_of(path: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse((ROOT / path).read_text())


def lines_of(path: Path) -> list[str]:
    """The file's lines."""
    return (ROOT / path).read_text().splitlines()


def repository_files() -> list[Path]:
    """What git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / line for line in listed.stdout.splitlines()]


def words_of(name: str) -> set[str]:
    """`RequestHelper` and `request_helper` both hold the words request and helper."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return set(spaced.lower().strip("_").split("_"))


def test_every_module_opens_with_why_it_exists() -> None:
    files = python_files("src", "bench", "scripts", "tests/support")
    silent = [p for p in files if (ROOT / p).stat().st_size and not ast.get_docstring(tree_of(p))]
    assert silent == []


def test_files_and_folders_are_named_after_the_domain() -> None:
    files = python_files("src", "bench", "tests")
    parts = {(p, part) for p in files for part in p.with_suffix("").parts}
    vague = [str(p) for p, part in parts if words_of(part) & VAGUE or part in VAGUE_ALONE]
    assert sorted(vague) == []


def test_classes_are_named_after_the_domain() -> None:
    named = [
        f"{path}: {node.name}"
        for path in python_files("src", "bench")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and words_of(node.name) & VAGUE
    ]
    assert named == []


def test_a_class_name_means_one_class() -> None:
    """Messages are left out: each has parts of its own that are named as Kafka names them."""
    found = [
        (node.name, str(path))
        for path in python_files("src")
        if "messages" not in path.parts
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    counts = Counter(name for name, _ in found)
    shared = [(name, path) for name, path in found if counts[name] > 1]
    assert [one for one in shared if one[0] not in SHARED_NAMES] == []
    assert {name for name, _ in shared} == SHARED_NAMES, "take unique names out of the list"


def test_no_source_file_grows_out_of_sight() -> None:
    prose = [p for p in python_files("src") if p not in TABLES and p.parent not in TABLES]
    lines = {str(p): (ROOT / p).read_text().count("\n") for p in prose}
    assert {p: count for p, count in lines.items() if count > LINES_MAX} == {}


def test_nothing_is_left_for_later() -> None:
    marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
    left = [str(p) for p in python_files("src", "bench") if marks.search((ROOT / p).read_text())]
    assert left == []


def test_the_repository_stands_alone() -> None:
    found = []
    for path in repository_files():
        if not path.is_file() or path.stat().st_size > 1_000_000:
            continue
        text = path.read_bytes().decode(errors="ignore")
        found += [f"{path.relative_to(ROOT)}: {word}" for word in FOREIGN if word in text]
    assert found == []


def test_tests_wait_by_looking_and_not_by_sleeping() -> None:
    """Where time itself is part of the story, the line says so."""
    sleepers = [
        f"{path}:{node.lineno}"
        for path in python_files("tests")
        if path.parts[1] != "support"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "time.sleep"
        and "  # " not in lines_of(path)[node.lineno - 1]
    ]
    assert sleepers == []
