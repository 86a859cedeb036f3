"""A project for a connector of one's own, written to be changed: it runs, and its tests pass.

The texts are templates: NAME is the package, CLASS the beginning of its classes' names.
"""

import re
from pathlib import Path

from penstock.errors import PenstockError

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


class ProjectRefused(PenstockError):
    """There is no such project to be made."""


def write_project(name: str, directory: Path) -> list[Path]:
    """The files of a new project, in a folder of its name; ProjectRefused tells why not."""
    if not _NAME.fullmatch(name):
        raise ProjectRefused(f"{name} is no name: use small letters, digits and dashes")
    home = directory / name
    if home.exists():
        raise ProjectRefused(f"{home} is there already")
    written = []
    for path, text in _FILES.items():
        file = home / _filled(path, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_filled(text, name))
        written.append(file)
    return written


def _filled(text: str, name: str) -> str:
    package = name.replace("-", "_")
    words = {
        "PROJECT": name,
        "NAME": package,
        "CLASS": "".join(part.title() for part in name.split("-")),
    }
    return re.sub(r"@(PROJECT|NAME|CLASS)@", lambda found: words[found[1]], text)


_PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "@PROJECT@"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["penstock"]

[project.optional-dependencies]
test = ["pytest"]

# What a worker finds them by: connector.class is the name on the left, or its last part.
[project.entry-points."penstock.connectors"]
"@NAME@.@CLASS@Source" = "@NAME@.source:@CLASS@Source"
"@NAME@.@CLASS@Sink" = "@NAME@.sink:@CLASS@Sink"

[tool.hatch.build.targets.wheel]
packages = ["src/@NAME@"]

[tool.pytest.ini_options]
pythonpath = ["src"]
"""

_README = """\
# @PROJECT@

A source and a sink for Kafka Connect on Penstock.

```sh
pip install -e '.[test]'     # A worker that is started now knows both.
pytest
curl -X PUT localhost:8083/connectors/one/config -H 'Content-Type: application/json' \\
  -d '{"connector.class": "@CLASS@Source", "topic": "t"}'
```
"""

_SOURCE = '''\
"""A source that counts: each number is a record, exactly once."""

import threading

from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, ExactlyOnceSupport, SourceTask
from penstock.connect.plugins.declared import DeclaredSource
from penstock.connect.plugins.validators import AtLeast, NonEmptyText
from penstock.connect.records import SourceRecord
from penstock.connect.values.schema import INT64_SCHEMA

CONFIG = ConfigDef(
    ConfigEntry(
        "topic",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "Where numbers go.",
        validator=NonEmptyText(),
    ),
    ConfigEntry(
        "interval.ms",
        ConfigType.INT,
        1000,
        Importance.MEDIUM,
        "The pause between two numbers.",
        validator=AtLeast(1),
    ),
)


class @CLASS@SourceTask(SourceTask):
    """Goes on behind the number that was committed."""

    def start(self, config: Config) -> None:
        parsed = CONFIG.parse(config)
        self._topic, self._pause_s = parsed["topic"], parsed["interval.ms"] / 1000
        self._stopping = threading.Event()
        offset = self.context.offset_reader.offset({"counter": "main"})
        self._next = offset["next"] if offset else 0

    def poll(self) -> list[SourceRecord] | None:
        if self._stopping.wait(self._pause_s):
            return None
        number, self._next = self._next, self._next + 1
        return [
            SourceRecord(
                topic=self._topic,
                value_schema=INT64_SCHEMA,
                value=number,
                source_partition={"counter": "main"},
                source_offset={"next": self._next},
            )
        ]

    def stop(self) -> None:
        self._stopping.set()


class @CLASS@Source(DeclaredSource):
    """One task."""

    CONFIG = CONFIG
    TASK = @CLASS@SourceTask

    def exactly_once_support(self, config: Config) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED
'''

_SINK = '''\
"""A sink that appends values to a file, at least once."""

from collections.abc import Mapping
from pathlib import Path

from penstock.connect.errors.kinds import RetriableConnectError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SinkTask
from penstock.connect.plugins.declared import DeclaredSink
from penstock.connect.plugins.validators import NonEmptyText
from penstock.connect.records import SinkRecord
from penstock.records.topic_partition import TopicPartition

CONFIG = ConfigDef(
    ConfigEntry(
        "path",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "The file.",
        validator=NonEmptyText(),
    ),
)


class @CLASS@SinkTask(SinkTask):
    """Keeps values until `flush`, which comes before each commit of offsets."""

    def start(self, config: Config) -> None:
        self._path = Path(CONFIG.parse(config)["path"])
        self._kept: list[str] = []

    def put(self, records: list[SinkRecord]) -> None:
        if not self._path.parent.is_dir():
            raise RetriableConnectError(f"{self._path.parent} is not there yet")
        self._kept += [f"{record.value}\\n" for record in records]

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        with self._path.open("a") as file:
            file.write("".join(self._kept))
        self._kept.clear()


class @CLASS@Sink(DeclaredSink):
    """As many tasks as there may be."""

    CONFIG = CONFIG
    TASK = @CLASS@SinkTask
'''

_TEST_SOURCE = '''\
"""The source with real converters, stopped at every step: no number is lost or comes twice."""

from @NAME@.source import @CLASS@Source
from penstock.connect.testing import SourceRun, refused_settings

GOOD = {"topic": "t", "interval.ms": "1"}


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert refused_settings(@CLASS@Source, GOOD) == {}
    assert sorted(refused_settings(@CLASS@Source, {"interval.ms": "0"})) == ["interval.ms", "topic"]


def test_each_number_is_there_once_wherever_the_task_dies() -> None:
    with SourceRun(@CLASS@Source, GOOD) as run:
        run.poll()
        run.crash()  # Polled, not in the topic: it comes again.
        run.poll()
        run.commit()
        run.crash()
        run.run_until(lambda: len(run.values("t")) >= 5)
        assert run.values("t") == ["0", "1", "2", "3", "4"]
        assert run.offsets == [({"counter": "main"}, {"next": 5})]
'''

_TEST_SINK = '''\
"""The sink with real converters: what was not committed comes again, nothing is lost."""

from pathlib import Path

from @NAME@.sink import @CLASS@Sink
from penstock.connect.testing import SinkRun, refused_settings


def test_the_path_must_be_given() -> None:
    assert list(refused_settings(@CLASS@Sink, {})) == ["path"]


def test_values_are_in_the_file_once_they_are_committed(tmp_path: Path) -> None:
    with SinkRun(@CLASS@Sink, {"path": str(tmp_path / "out")}) as run:
        run.produce("t", b"one")
        run.deliver()
        run.crash()  # Nothing was committed, so it is brought again.
        run.produce("t", b"two")
        run.deliver()
        run.commit()
        assert run.committed == {("t", 0): 2}
    assert (tmp_path / "out").read_text() == "one\\ntwo\\n"
'''

_FILES = {
    "pyproject.toml": _PYPROJECT,
    "README.md": _README,
    "src/@NAME@/__init__.py": '"""Connectors of @PROJECT@."""\n',
    "src/@NAME@/source.py": _SOURCE,
    "src/@NAME@/sink.py": _SINK,
    "tests/test_source.py": _TEST_SOURCE,
    "tests/test_sink.py": _TEST_SINK,
}
