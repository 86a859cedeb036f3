"""The registry client against a real HTTP server that answers as Confluent's does."""

import base64
import json
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from google.protobuf import descriptor_pb2
from tests.unit.schemas.protos import add, shop_file

from penstock.errors import ConfigError
from penstock.schemas.avro import AvroReader, AvroWriter, parse_stored
from penstock.schemas.errors import SchemaError, UnknownSchema
from penstock.schemas.lookup import SchemaKind, SchemaLookup
from penstock.schemas.protobuf import ProtobufSchema
from penstock.schemas.registry_client import (
    NewSchema,
    ReferencedVersion,
    RegisteredSchema,
    RegistryClient,
    RegistryRefused,
    RegistryUnreachable,
)

LINE = {"type": "record", "name": "shop.Line", "fields": [{"name": "sku", "type": "string"}]}
ORDER = {"type": "record", "name": "shop.Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "line", "type": "shop.Line"}]}  # fmt: skip


class Registry:
    """A registry with the answers it was given; remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[str] = []
        self.posted: list[Any] = []
        self.authorization: list[str | None] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                registry.posted.append(json.loads(self.rfile.read(size)))
                self._answer()

            def _answer(self) -> None:
                registry.asked.append(self.path)
                registry.authorization.append(self.headers["Authorization"])
                unknown = (404, {"error_code": 40403, "message": "Schema not found"})
                status, body = registry.answers.get(urlsplit(self.path).path, unknown)
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Nothing on stderr."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        """Stop it."""
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def registry() -> Iterator[Registry]:
    one = Registry()
    yield one
    one.close()


def test_a_schema_is_asked_for_once_and_is_avro_unless_said_otherwise(registry: Registry) -> None:
    registry.answers["/schemas/ids/3"] = (200, {"schema": '"string"'})
    client = RegistryClient(registry.url)
    assert isinstance(client, SchemaLookup)
    assert client.by_id(3) == client.by_id(3)
    assert (client.by_id(3).kind, client.by_id(3).text) == (SchemaKind.AVRO, '"string"')
    assert registry.asked == ["/schemas/ids/3?format=serialized"]


def test_it_travels_to_other_processes(registry: Registry) -> None:
    registry.answers["/schemas/ids/3"] = (200, {"schema": "{}", "schemaType": "JSON"})
    client = pickle.loads(pickle.dumps(RegistryClient(registry.url + "/")))
    assert client.by_id(3).kind is SchemaKind.JSON


def test_schemas_of_other_subjects_are_fetched_too(registry: Registry) -> None:
    reference = {"name": "shop.Line", "subject": "lines/value", "version": 2}
    registry.answers["/schemas/ids/9"] = (
        200,
        {"schema": json.dumps(ORDER), "references": [reference]},
    )
    registry.answers["/subjects/lines%2Fvalue/versions/2"] = (
        200,
        {"id": 4, "schema": json.dumps(LINE)},
    )
    schema = parse_stored(RegistryClient(registry.url).by_id(9))
    value = {"id": 1, "line": {"sku": "a"}}
    assert AvroReader.of(schema).decode(AvroWriter.of(schema).encode(value)) == value


def test_protobuf_comes_compiled_with_its_imports(registry: Registry) -> None:
    outer = descriptor_pb2.FileDescriptorProto(package="out", syntax="proto3")
    outer.dependency.append("other/shop.proto")
    add(outer.message_type.add(name="Box"), "refund", "shop.Refund")

    def answer(file: descriptor_pb2.FileDescriptorProto, **more: Any) -> tuple[int, Any]:
        text = base64.b64encode(file.SerializeToString()).decode()
        return 200, {"schema": text, "schemaType": "PROTOBUF", **more}

    reference = {"name": "other/shop.proto", "subject": "shop", "version": 1}
    registry.answers["/schemas/ids/5"] = answer(outer, references=[reference])
    registry.answers["/subjects/shop/versions/1"] = answer(shop_file(), id=4)
    stored = RegistryClient(registry.url).by_id(5)
    schema = ProtobufSchema.at(stored.descriptor_set, (0,))
    assert schema.message == "out.Box"
    message = schema.message_class(refund={"order_id": 7})
    assert schema.decode(message.SerializeToString()).refund.order_id == 7


def test_protobuf_as_text_is_refused_with_what_to_do(registry: Registry) -> None:
    body = {"schema": 'syntax = "proto3";', "schemaType": "PROTOBUF"}
    registry.answers["/schemas/ids/5"] = (200, body)
    with pytest.raises(SchemaError, match=r"schema 5 came as Protobuf text.*SchemaDirectory"):
        RegistryClient(registry.url).by_id(5)


def test_an_unknown_id_is_told_from_a_registry_in_trouble(registry: Registry) -> None:
    client = RegistryClient(registry.url)
    with pytest.raises(UnknownSchema, match=r"no schema with id 1 .*127"):
        client.by_id(1)
    registry.answers["/schemas/ids/2"] = (500, {"message": "no leader"})
    with pytest.raises(RegistryUnreachable, match="answered 500"):
        client.by_id(2)
    registry.answers["/schemas/ids/2"] = (401, {"message": "who are you"})
    with pytest.raises(RegistryUnreachable, match="answered 401"):
        client.by_id(2)
    registry.answers["/schemas/ids/2"] = (200, b"<html>a proxy</html>")
    with pytest.raises(RegistryUnreachable, match="does not answer like"):
        client.by_id(2)
    registry.answers["/schemas/ids/2"] = (200, {"schema": "1", "schemaType": "THRIFT"})
    with pytest.raises(SchemaError, match="THRIFT"):
        client.by_id(2)


def test_the_next_registry_is_asked_when_the_first_is_gone(registry: Registry) -> None:
    gone = Registry()
    gone.close()
    registry.answers["/schemas/ids/1"] = (200, {"schema": '"int"'})
    assert RegistryClient(f"{gone.url}, {registry.url}").by_id(1).text == '"int"'
    with pytest.raises(RegistryUnreachable, match="no schema registry answers"):
        RegistryClient(gone.url, timeout_s=2).by_id(1)


def test_a_reference_to_nothing_is_named(registry: Registry) -> None:
    reference = {"name": "x", "subject": "lines", "version": 7}
    registry.answers["/schemas/ids/1"] = (200, {"schema": '"x"', "references": [reference]})
    with pytest.raises(SchemaError, match="schema 1 refers to version 7 of lines"):
        RegistryClient(registry.url).by_id(1)


def test_schemas_that_refer_to_each_other_end(registry: Registry) -> None:
    reference = {"name": "x", "subject": "x", "version": 1}
    body = {"schema": '"x"', "id": 1, "references": [reference]}
    registry.answers["/schemas/ids/1"] = registry.answers["/subjects/x/versions/1"] = (200, body)
    with pytest.raises(SchemaError, match="without end"):
        RegistryClient(registry.url).by_id(1)


def test_the_password_is_read_where_the_client_runs(registry: Registry, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("ann:open sesame\n")
    registry.answers["/schemas/ids/1"] = (200, {"schema": '"int"'})
    client = RegistryClient(registry.url, basic_auth=f"file:{secret}")
    assert b"sesame" not in pickle.dumps(client)
    client.by_id(1)
    expected = base64.b64encode(b"ann:open sesame").decode()
    assert registry.authorization == [f"Basic {expected}"]


@pytest.mark.parametrize("urls", ["", " , ", "localhost:8081", "ftp://host"])
def test_a_url_that_is_none_is_refused(urls: str) -> None:
    with pytest.raises(ConfigError, match="schema registry"):
        RegistryClient(urls)


def test_the_subjects_of_an_id_are_told(registry: Registry) -> None:
    client = RegistryClient(registry.url)
    registry.answers["/schemas/ids/3/subjects"] = (200, ["orders-value", "x"])
    assert client.subjects_of(3) == ["orders-value", "x"]
    assert client.subjects_of(4) is None
    registry.answers["/schemas/ids/5/subjects"] = (200, {"no": "list"})
    with pytest.raises(RegistryUnreachable, match="does not answer like"):
        client.subjects_of(5)


def test_a_schema_is_registered_once_and_found_with_its_version(registry: Registry) -> None:
    reference = ReferencedVersion(name="n", subject="s", version=2)
    new = NewSchema(kind=SchemaKind.JSON, text="{}", references=(reference,))
    registry.answers["/subjects/a%2Fb/versions"] = (200, {"id": 7})
    registry.answers["/subjects/a%2Fb"] = (200, {"id": 7, "version": 3, "schema": "{}"})
    client = RegistryClient(registry.url)
    assert [client.register("a/b", new) for _ in range(2)] == [7, 7]
    assert client.register("a/b", new, normalize=True) == 7
    expected = RegisteredSchema(subject="a/b", version=3, schema_id=7)
    assert client.find("a/b", new) == client.find("a/b", new) == expected
    assert registry.asked == [
        "/subjects/a%2Fb/versions",
        "/subjects/a%2Fb/versions?normalize=true",
        "/subjects/a%2Fb",
    ]
    document = {
        "schema": "{}",
        "schemaType": "JSON",
        "references": [{"name": "n", "subject": "s", "version": 2}],
    }
    assert registry.posted == [document] * 3
    assert NewSchema(kind=SchemaKind.AVRO, text='"int"').document() == {"schema": '"int"'}


def test_what_the_registry_refuses_is_told_in_its_words_and_not_remembered(
    registry: Registry,
) -> None:
    new = NewSchema(kind=SchemaKind.AVRO, text='"int"')
    client = RegistryClient(registry.url)
    said = {"error_code": 42201, "message": "Invalid schema"}
    registry.answers["/subjects/s/versions"] = (422, said)
    with pytest.raises(RegistryRefused, match=r"Invalid schema \(error code 42201\)") as caught:
        client.register("s", new)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.status, again.error_code) == (422, 42201)
    registry.answers["/subjects/s/versions"] = (200, {"id": 1})
    assert client.register("s", new) == 1
    registry.answers["/subjects/t/versions"] = (200, {"nothing": 1})
    with pytest.raises(RegistryUnreachable, match="has no id"):
        client.register("t", new)


def test_the_latest_is_the_latest_for_as_long_as_was_said(registry: Registry) -> None:
    path = "/subjects/s/versions/latest"
    registry.answers[path] = (200, {"id": 1, "version": 1, "schema": '"int"'})
    kept, asked = RegistryClient(registry.url), RegistryClient(registry.url, latest_ttl_s=0)
    assert (kept.latest("s").schema_id, asked.latest("s").schema_id) == (1, 1)
    registry.answers[path] = (200, {"id": 2, "version": 2, "schema": '"long"'})
    assert (kept.latest("s").schema_id, asked.latest("s").schema_id) == (1, 2)
    registry.answers["/subjects/s/metadata"] = (200, {"id": 5, "schema": '"int"'})
    assert kept.latest("s", {"major": "2"}).schema_id == 5
    assert registry.asked[-1] == "/subjects/s/metadata?key=major&value=2&format=serialized"


def test_rules_that_are_switched_on_come_with_the_schema(registry: Registry) -> None:
    rules = [
        {"name": "on", "type": "CEL", "mode": "WRITE"},
        {"name": "off", "type": "CEL", "mode": "READ", "disabled": True},
    ]
    body = {"schema": '"int"', "ruleSet": {"domainRules": rules, "migrationRules": None}}
    registry.answers["/schemas/ids/3"] = (200, body)
    (rule,) = RegistryClient(registry.url).by_id(3).rules
    assert (rule.name, rule.kind, rule.mode) == ("on", "CEL", "WRITE")


def test_credentials_may_stand_in_the_address(registry: Registry) -> None:
    registry.answers["/schemas/ids/1"] = (200, {"schema": '"int"'})
    inside = registry.url.replace("http://", "http://ann:open%20sesame@")
    RegistryClient(inside).by_id(1)
    RegistryClient(registry.url, bearer_token="t0ken").by_id(1)
    expected = base64.b64encode(b"ann:open sesame").decode()
    assert registry.authorization == [f"Basic {expected}", "Bearer t0ken"]
    assert "sesame" not in str(pickle.dumps(RegistryClient(registry.url, basic_auth="env:SECRET")))


def test_a_registry_without_a_leader_is_asked_again(registry: Registry) -> None:
    registry.answers["/schemas/ids/1"] = (500, {"error_code": 50004, "message": "no leader"})
    with pytest.raises(RegistryUnreachable, match="answered 500"):
        RegistryClient(registry.url).by_id(1)
    assert len(registry.asked) == 3
