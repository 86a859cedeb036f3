"""One script of calls of Connect's REST API, for whichever worker serves it, and what it answers.

Apache's answers are kept in tests/golden/connect (`python -m tests.support.connect_golden` asks a
real worker for them). Names of machines, ports, versions and directories are masked.
"""

import http.client
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.waiting import eventually

Answer = tuple[int, Any]
SOURCE = "FileStreamSource"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
_WAIT_S = 120.0


@dataclass(frozen=True)
class Step:
    """One call; with `until` it is made again until its answer is so."""

    method: str
    path: str
    body: object = None
    until: Callable[[Answer], bool] = lambda _: True


def call(url: str, method: str, path: str, body: object = None) -> Answer:
    """Status and document; None where there is no body."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=100)
    try:
        text = None if body is None else body if isinstance(body, str) else json.dumps(body)
        headers = {"content-type": "application/json"} if text is not None else {}
        connection.request(method, path, text, headers)
        response = connection.getresponse()
        content = response.read()
        return response.status, _document(content)
    finally:
        connection.close()


def _document(content: bytes) -> Any:
    if not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")


def runs(tasks: int = 1, state: str = "RUNNING") -> Callable[[Answer], bool]:
    """Whether a status tells of a connector and so many tasks in a state."""

    def look(answer: Answer) -> bool:
        status, document = answer
        if status != 200 or document["connector"]["state"] != state:
            return False
        states = [task["state"] for task in document["tasks"]]
        return states == [state] * tasks

    return look


def _is_ok(answer: Answer) -> bool:
    return answer[0] == 200


def _has_offsets(answer: Answer) -> bool:
    return answer[0] == 200 and bool(answer[1]["offsets"])


def _has_topics(name: str) -> Callable[[Answer], bool]:
    return lambda answer: answer[0] == 200 and bool(answer[1][name]["topics"])


def script(directory: Path) -> list[Step]:
    """The calls; the source reads `in.txt` of the directory, the sink writes `out.txt`."""
    source = {
        "connector.class": SOURCE,
        "tasks.max": "1",
        "file": str(directory / "in.txt"),
        "topic": "lines",
    }
    sink = {
        "connector.class": SINK,
        "tasks.max": "1",
        "file": str(directory / "out.txt"),
        "topics": "lines",
    }
    at = "/connectors/src"
    partition = {"filename": str(directory / "in.txt")}
    return [
        Step("GET", "/", until=_is_ok),
        Step("GET", "/health", until=_is_ok),
        Step("GET", "/connectors", until=_is_ok),
        Step("POST", "/connectors", {"name": "src", "config": source}),
        Step("GET", f"{at}/status", until=runs()),
        Step("POST", "/connectors", {"name": "src", "config": source}),
        Step(
            "POST", "/connectors", {"name": "bad", "config": {"connector.class": "no.such.Class"}}
        ),
        Step("POST", "/connectors", {"name": "bad", "config": {"tasks.max": "1"}}),
        Step("POST", "/connectors", {"name": "bad", "config": {**source, "tasks.max": "0"}}),
        Step("POST", "/connectors", {"name": "bad", "config": {**source, "topic": ""}}),
        Step("POST", "/connectors", {"name": "bad", "config": {**source, "name": "other"}}),
        Step("POST", "/connectors", "{not json"),
        Step("POST", "/connectors", {"name": "bad", "config": source, "initial_state": "NONE"}),
        Step(
            "POST",
            "/connectors",
            {"name": "idle", "config": {**source, "topic": "idle"}, "initial_state": "STOPPED"},
        ),
        Step("GET", "/connectors/idle/status", until=runs(0, "STOPPED")),
        Step("DELETE", "/connectors/idle"),
        Step("GET", at),
        Step("GET", f"{at}/config"),
        Step("GET", f"{at}/tasks"),
        Step("GET", f"{at}/tasks/0/status"),
        Step("GET", f"{at}/tasks/7/status"),
        Step("GET", f"{at}/tasks-config"),
        Step("GET", f"{at}/topics", until=_has_topics("src")),
        Step("GET", f"{at}/offsets", until=_has_offsets),
        Step("GET", "/connectors?expand=status&expand=info"),
        Step("GET", "/connectors?expand=nothing"),
        Step("GET", "/connectors/nope"),
        Step("GET", "/connectors/nope/status"),
        Step("GET", "/connectors/nope/config"),
        Step("GET", "/connectors/nope/tasks"),
        Step("GET", "/connectors/nope/topics"),
        Step("GET", "/connectors/nope/offsets"),
        Step("DELETE", "/connectors/nope"),
        Step("PUT", "/connectors/nope/pause"),
        Step("PUT", "/connectors/nope/stop"),
        Step("POST", "/connectors/nope/restart"),
        Step("POST", "/connectors/nope/restart?includeTasks=true"),
        Step("POST", "/connectors/nope/tasks/0/restart"),
        Step("GET", "/nowhere"),
        Step("PATCH", "/connectors"),
        Step("PUT", f"{at}/config", {**source, "batch.size": "1000"}),
        Step("GET", f"{at}/status", until=runs()),
        Step("PUT", f"{at}/config", {**source, "batch.size": "many"}),
        Step("PATCH", f"{at}/config", {"batch.size": "2000"}),
        Step("GET", f"{at}/status", until=runs()),
        Step("PATCH", "/connectors/nope/config", {"batch.size": "2000"}),
        Step("PUT", "/connectors/sink/config", sink),
        Step("GET", "/connectors/sink/status", until=runs()),
        Step("GET", "/connectors/sink/offsets", until=_has_offsets),
        Step("GET", "/connectors/sink/topics", until=_has_topics("sink")),
        Step("PUT", f"{at}/pause"),
        Step("GET", f"{at}/status", until=runs(1, "PAUSED")),
        Step("PUT", f"{at}/resume"),
        Step("GET", f"{at}/status", until=runs()),
        Step("POST", f"{at}/restart"),
        Step("POST", f"{at}/tasks/0/restart"),
        Step("POST", f"{at}/tasks/7/restart"),
        Step("GET", f"{at}/status", until=runs()),
        Step("POST", f"{at}/restart?includeTasks=true&onlyFailed=true"),
        Step("POST", f"{at}/restart?includeTasks=true&onlyFailed=false"),
        Step("GET", f"{at}/status", until=runs()),
        Step("PUT", f"{at}/topics/reset"),
        Step("DELETE", f"{at}/offsets"),
        Step("PATCH", f"{at}/offsets", {"offsets": []}),
        Step("PUT", f"{at}/stop"),
        Step("GET", f"{at}/status", until=runs(0, "STOPPED")),
        Step("GET", f"{at}/tasks"),
        Step("PATCH", f"{at}/offsets", {"offsets": []}),
        Step(
            "PATCH",
            f"{at}/offsets",
            {"offsets": [{"partition": partition, "offset": {"position": 2}}]},
        ),
        Step(
            "PATCH",
            f"{at}/offsets",
            {"offsets": [{"partition": partition, "offset": {"position": "x"}}]},
        ),
        Step("PATCH", f"{at}/offsets", {"offsets": [{"partition": {}, "offset": {"position": 2}}]}),
        Step("GET", f"{at}/offsets"),
        Step("DELETE", f"{at}/offsets", until=_is_ok),
        Step("GET", f"{at}/offsets"),
        Step("PUT", "/connectors/sink/stop"),
        Step("GET", "/connectors/sink/status", until=runs(0, "STOPPED")),
        Step(
            "PATCH",
            "/connectors/sink/offsets",
            {
                "offsets": [
                    {
                        "partition": {"kafka_topic": "lines", "kafka_partition": 0},
                        "offset": {"kafka_offset": 1},
                    }
                ]
            },
            until=_is_ok,
        ),
        Step("GET", "/connectors/sink/offsets"),
        Step(
            "PATCH",
            "/connectors/sink/offsets",
            {"offsets": [{"partition": {"topic": "lines"}, "offset": {"kafka_offset": 1}}]},
        ),
        Step("DELETE", "/connectors/sink/offsets", until=_is_ok),
        Step("GET", "/connectors/sink/offsets"),
        Step("GET", "/connector-plugins"),
        Step("GET", "/connector-plugins/FileStreamSource/config"),
        Step("GET", "/connector-plugins/NoSuch/config"),
        Step("PUT", "/connector-plugins/FileStreamSource/config/validate", source),
        Step("PUT", "/connector-plugins/FileStreamSource/config/validate", {**source, "topic": ""}),
        Step(
            "PUT",
            "/connector-plugins/FileStreamSource/config/validate",
            {"connector.class": "FileStreamSource", "tasks.max": "none"},
        ),
        Step(
            "PUT", "/connector-plugins/FileStreamSink/config/validate", {"connector.class": SOURCE}
        ),
        Step("PUT", "/connector-plugins/NoSuch/config/validate", source),
        Step("GET", "/admin/loggers/root"),
        Step("PUT", "/admin/loggers/org.example", {"level": "DEBUG"}),
        Step("GET", "/admin/loggers/org.example"),
        Step("PUT", "/admin/loggers/org.example", {"level": "LOUD"}),
        Step("PUT", "/admin/loggers/org.example", {}),
        Step("PUT", "/admin/loggers/org.example?scope=cluster", {"level": "INFO"}),
        Step("GET", "/admin/loggers/org.unknown"),
        Step("DELETE", "/connectors/sink"),
        Step("DELETE", at),
        Step("GET", at),
        Step("GET", "/connectors", until=lambda answer: answer == (200, [])),
    ]


def answers(url: str, directory: Path) -> list[dict[str, Any]]:
    """What a worker at `url` answers to the script, masked."""
    told = []
    for step in script(directory):
        answer = _asked(url, step)
        told.append(
            {
                "call": f"{step.method} {step.path}",
                "status": answer[0],
                "body": masked(answer[1], directory),
            }
        )
    return told


def _asked(url: str, step: Step) -> Answer:
    seen: list[Answer] = []

    def look() -> bool:
        seen.append(call(url, step.method, step.path, step.body))
        return step.until(seen[-1])

    try:
        eventually(look, timeout_s=_WAIT_S, every_s=0.2, what=f"{step.method} {step.path}")
    except AssertionError as error:
        raise AssertionError(f"{error}; the last answer was {seen[-1:]}") from None
    return seen[-1]


_APACHE = "org.apache.kafka."
_HIDDEN = {
    "commit",
    "documentation",  # Each has its own words.
    "kafka_cluster_id",
    "last_modified",
    "trace",
    "version",
    "worker_id",
}
_OWN_WORDS = (  # Sentences of a JSON parser, and the list of plug-ins that happen to be there.
    (r"(available connectors are: ).*", r"\1*"),
    (r"^(Unexpected character|The body is not JSON).*", "*"),
    (r"^(Cannot construct instance|.* is none of RUNNING).*", "*"),
    (r"127\.0\.0\.1:\d+", "HOST:PORT"),
)


def masked(document: Any, directory: Path) -> Any:
    """What may differ between two workers, taken out; maps in the order of their names."""
    if isinstance(document, Mapping):
        return {name: _masked_value(document, name, directory) for name in sorted(document)}
    if isinstance(document, list):
        return [masked(one, directory) for one in document if not _is_own_plugin(one)]
    if isinstance(document, str):
        text = document.replace(str(directory), "DIR")
        for pattern, words in _OWN_WORDS:
            text = re.sub(pattern, words, text, flags=re.DOTALL)
        return text
    return document


def _is_own_plugin(document: Any) -> bool:
    """Whether it is a connector in the list of plug-ins that is not one of Apache's."""
    is_plugin = isinstance(document, Mapping) and {"class", "type"} <= document.keys()
    return is_plugin and not str(document["class"]).startswith(_APACHE)


def _masked_value(document: Mapping[str, Any], name: str, directory: Path) -> Any:
    value = document[name]
    is_of_converters = str(document.get("name", "")).endswith(".converter")
    if name in _HIDDEN and value is not None:
        return "*"
    if name == "recommended_values" and is_of_converters:
        return "*"  # Which plug-ins there are differs.
    return masked(value, directory)
