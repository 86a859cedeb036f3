"""What the documents name is there: files, modules, links, commands, and the parts of the walks."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from penstock.cli.main import TOOLS
from penstock.config.broker import BROKER_SETTINGS
from penstock.config.topic import TOPIC_SETTINGS
from penstock.connect.plugins.lookup import PluginKind
from penstock.connect.settings import LANE, OWN_SETTINGS
from penstock.sql.service.settings import SPARK_CONF, SQL_DEFAULTS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "penstock"
TOP = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
DOCUMENTS = sorted(
    [*(ROOT / name for name in TOP), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/**/*.md")]
)
# A file of these kinds is ours, whatever the folder that is named with it.
KINDS = {".py", ".md"}
# Stands for any name in a document that tells what to add: `broker/handlers/NAME.py`.
ANY = "NAME"
# Words of Kafka in the walks, which our files need not know.
KAFKAS = {"__consumer_offsets", "__transaction_state", "read_committed"}
PLUGIN_GROUPS = {kind.group for kind in PluginKind}  # Of entry points.
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
# What begins with a slash is a path of a URL or of a machine, and none of ours.
PATH = re.compile(r"(?<![/\w.-])[\w.-]+(?:/[\w.-]+)*/?")
LINK = re.compile(r"\]\(([^)\s]+)\)")
DOTTED = re.compile(r"\bpenstock(?:\.\w+)+")
WORD = re.compile(r"[A-Za-z_]\w*(?:\.[a-z_]\w*)?")


def document_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose_of(text: str) -> str:
    """The text without its blocks of code."""
    return FENCE.sub("", text)


def blocks_of(text: str) -> str:
    """The blocks of code alone."""
    return "\n".join(FENCE.findall(text))


@cache
def tops() -> frozenset[str]:
    """The first words of paths: the folders of the repository and of the package."""
    return frozenset(p.name for base in (ROOT, PACKAGE) for p in base.iterdir() if p.is_dir())


@cache
def file_names() -> frozenset[str]:
    """The names of all files that people wrote."""
    folders = ("src", "tests", "bench", "scripts", "examples", "docs", "config")
    below = (p for folder in folders for p in (ROOT / folder).rglob("*"))
    return frozenset(p.name for p in (*ROOT.iterdir(), *below) if p.is_file())


def is_path(word: str) -> bool:
    return Path(word).suffix in KINDS or ("/" in word and word.split("/")[0] in tops())


def exists(word: str, document: Path) -> bool:
    """Whether a path is there, from the root, from the package or from the document."""
    if "/" not in word:
        return word in file_names()
    bases = (ROOT, PACKAGE, document.parent, ROOT / "src")
    pattern = word.rstrip("/").replace(ANY, "*")
    found = (p for base in bases for p in base.glob(pattern))
    return any(p.is_dir() or not word.endswith("/") for p in found)


def missing_paths(text: str, document: Path) -> list[str]:
    """The paths between backticks, or in blocks of code, that lead nowhere."""
    spans = (word for span in SPAN.findall(prose_of(text)) for word in PATH.findall(span))
    # Commands also name what they make, so only what begins like a path of ours is held to it.
    named = (word for word in PATH.findall(blocks_of(text)) if "/" in word)
    wanted = {word.rstrip(".") for word in (*spans, *named)}
    return sorted(word for word in wanted if is_path(word) and not exists(word, document))


def module_file(parts: Iterable[str]) -> Path | None:
    place = ROOT / "src" / Path(*parts)
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


def is_known(dotted: str) -> bool:
    """Whether a dotted name is a setting, a group of plug-ins, a module, or in a module."""
    if dotted in {*BROKER_SETTINGS, *TOPIC_SETTINGS, *OWN_SETTINGS} or dotted in PLUGIN_GROUPS:
        return True
    if dotted in SQL_DEFAULTS or dotted == LANE or f"{dotted}." == SPARK_CONF:
        return True
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        path = module_file(parts[:count])
        if path is not None:
            return count == len(parts) or has_word(path, parts[count])
    return False


@cache
def words_in(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", path.read_text()))


def has_word(path: Path, word: str) -> bool:
    return word in words_in(path)


def slug(heading: str) -> str:
    """The anchor that is made of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def dead_links(text: str, document: Path) -> list[str]:
    return [link for link in LINK.findall(prose_of(text)) if not leads_somewhere(link, document)]


def leads_somewhere(link: str, document: Path) -> bool:
    if re.match(r"https?:", link):
        return True
    name, _, anchor = link.partition("#")
    target = (document.parent / name) if name else document
    if not target.exists():
        return False
    if not anchor:
        return True
    return anchor in map(slug, re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE))


def unknown_commands(text: str) -> list[str]:
    """Commands that neither `penstock`, nor pyproject.toml, nor the Makefile knows."""
    code = "\n".join([blocks_of(text), *SPAN.findall(prose_of(text))])
    called = re.findall(r"(?:^|\$ |bin/)penstock ([a-z][\w-]*)", code, re.MULTILINE)
    unknown = {f"penstock {word}" for word in called if word not in {t.name for t in TOOLS}}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tools = {*project["scripts"], *("python", "pytest", "ruff", "mypy", "lint-imports", "pip")}
    unknown |= {word for word in re.findall(r"\.venv/bin/([\w.-]+)", code) if word not in tools}
    words = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made = re.findall(r"(?:^|\$ )make ([a-z][a-z-]*)", code, re.MULTILINE)
    return sorted(unknown | {f"make {word}" for word in made if word not in words})


def rows_of_walks(text: str) -> Iterator[tuple[list[Path], set[str]]]:
    """Of each row of a table that names files: the files, and the other words in backticks."""
    for line in text.splitlines():
        spans = SPAN.findall(line) if line.startswith("|") else []
        files = [PACKAGE / span for span in spans if span.endswith(".py") and "/" in span]
        if files:
            yield files, {span for span in spans if WORD.fullmatch(span)} - KAFKAS


def strangers(text: str) -> list[str]:
    """Words of a walk that none of the files of their row knows."""
    return sorted(
        f"{word} in {', '.join(path.name for path in files)}"
        for files, words in rows_of_walks(text)
        for word in words
        for part in word.split(".")
        if not any(path.is_file() and has_word(path, part) for path in files)
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=document_id)
def test_every_path_in_a_document_exists(document: Path) -> None:
    assert missing_paths(document.read_text(), document) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=document_id)
def test_every_link_in_a_document_leads_somewhere(document: Path) -> None:
    assert dead_links(document.read_text(), document) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=document_id)
def test_every_module_in_a_document_exists(document: Path) -> None:
    named = set(DOTTED.findall(document.read_text()))
    assert sorted(name for name in named if not is_known(name)) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=document_id)
def test_every_command_in_a_document_exists(document: Path) -> None:
    assert unknown_commands(document.read_text()) == []


def test_the_walks_name_what_their_files_know() -> None:
    assert strangers((ROOT / "ARCHITECTURE.md").read_text()) == []


def test_every_floor_of_the_package_stands_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    drawn = set(re.findall(r"\w+", blocks_of(text)))
    floors = {p.name for p in PACKAGE.iterdir() if (p / "__init__.py").is_file()}
    assert sorted(floors - drawn) == []


def test_every_document_stands_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text())}
    assert sorted(document_id(p) for p in DOCUMENTS if p not in {*linked, index}) == []


def test_every_invariant_of_the_code_and_its_tests_is_in_the_list() -> None:
    listed = set(re.findall(r"^\| (I\d+) ", (ROOT / "docs/invariants.md").read_text(), re.M))
    used = {
        name
        for folder in ("src", "tests", "docs/adr")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md")
        for name in re.findall(r"[( ](I\d+)\b", path.read_text())
    }
    assert used
    assert sorted(used - listed) == []


# That the checks find what is wrong


def test_paths_that_lead_nowhere_are_found() -> None:
    text = "`storage/log/log.py`, `storage/log/nowhere.py`, `nowhere.py`, `storage/nowhere/`"
    wrong = ["nowhere.py", "storage/log/nowhere.py", "storage/nowhere/"]
    assert missing_paths(text, ROOT / "README.md") == wrong
    block = "```sh\nexamples/nowhere.py tables/prices config/server.properties\n```\n"
    assert missing_paths(block, ROOT / "README.md") == ["examples/nowhere.py"]


def test_links_that_lead_nowhere_are_found() -> None:
    text = "[a](docs/nowhere.md) [b](#two-commands) [c](#nowhere) [d](docs/support.md#nowhere)"
    wrong = ["docs/nowhere.md", "#nowhere", "docs/support.md#nowhere"]
    assert dead_links(text, ROOT / "README.md") == wrong


def test_modules_that_are_not_there_are_found() -> None:
    assert is_known("penstock.storage.log.log")
    assert is_known("penstock.storage.log.log.Log")
    assert not is_known("penstock.storage.log.nowhere")
    assert not is_known("penstock.nowhere")


def test_commands_that_are_not_there_are_found() -> None:
    text = "`penstock topics`, `penstock nothing`, `make nothing`, `.venv/bin/kafka-nothing`"
    assert unknown_commands(text) == ["kafka-nothing", "make nothing", "penstock nothing"]


def test_words_of_a_walk_that_its_files_do_not_know_are_found() -> None:
    row = "| 1 | `storage/log/log.py` | `append_as_leader` and `Log.nothing_of_it` |\n"
    assert strangers(row) == ["Log.nothing_of_it in log.py"]
