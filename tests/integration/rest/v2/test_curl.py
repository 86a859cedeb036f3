"""The tutorials' way: nothing but curl, from the first record to the end of the consumer."""

import json
import shutil
import subprocess

import httpx
import pytest
from tests.integration.rest.v2.asking import V2, media
from tests.support.rest import RestProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def curl(*arguments: str) -> str:
    """What curl prints; it must be content with the exchange."""
    command = ["curl", "--silent", "--show-error", "--max-time", "120", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def send(url: str, kind: str, document: object, *more: str) -> str:
    data = json.dumps(document)
    return curl("-X", "POST", "-H", f"Content-Type: {kind}", "--data", data, url, *more)


def test_json_from_the_first_record_to_the_end(proxy: RestProcess, topic: str) -> None:
    sent = send(
        f"{proxy.url}/topics/{topic}",
        media("json"),
        {"records": [{"key": "alice", "value": {"count": 0}}, {"value": {"count": 1}}]},
        "-H",
        f"Accept: {V2}",
    )
    assert [one["offset"] for one in json.loads(sent)["offsets"]] == [0, 1]
    wanted = {"name": "curl", "format": "json", "auto.offset.reset": "earliest"}
    base = json.loads(send(f"{proxy.url}/consumers/{topic}", V2, wanted))["base_uri"]
    assert send(f"{base}/subscription", V2, {"topics": [topic]}, "-w", "%{http_code}") == "204"
    found: list[dict[str, object]] = []

    def all_there() -> bool:
        accept = f"Accept: {media('json')}"
        found.extend(json.loads(curl("-H", accept, f"{base}/records?timeout=2000")))
        return len(found) == 2

    eventually(all_there, what="both records")
    assert found[0] == {
        "topic": topic,
        "key": "alice",
        "value": {"count": 0},
        "partition": 0,
        "offset": 0,
    }
    assert curl("-X", "DELETE", "-H", f"Accept: {V2}", base, "-w", "%{http_code}") == "204"


def test_avro_by_text_and_then_by_id(proxy: RestProcess, topic: str) -> None:
    schema = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
    document: dict[str, object] = {
        "value_schema": json.dumps(schema),
        "records": [{"value": {"name": "testUser"}}],
    }
    url = f"{proxy.url}/topics/{topic}"
    first = json.loads(send(url, media("avro"), document))
    document = {"value_schema_id": first["value_schema_id"], "records": document["records"]}
    second = json.loads(send(url, media("avro"), document))
    assert second["offsets"][0]["offset"] == 1
    assert second["value_schema_id"] == first["value_schema_id"]


def test_a_form_is_told_what_is_wrong_with_it(
    proxy: RestProcess, client: httpx.Client, topic: str
) -> None:
    told = curl("--data", '{"records":[{"value":"QUJD"}]}', f"{proxy.url}/topics/{topic}")
    assert json.loads(told) == {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"}
