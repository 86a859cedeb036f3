"""Confluent's interface, route by route, over a topic in memory."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import httpx
import pytest
from tests.unit.registry.service.rig import (
    BARE,
    ID,
    MEDIA,
    NOTE,
    MemoryTopic,
    Registry,
    record,
)

from penstock.http.basic_auth import BasicAuth, HttpUser

V1, V2, BAD = record(ID), record(ID, NOTE), record(ID, BARE)


def told(schema: object) -> str:
    """A schema's text as the registry keeps it."""
    return json.dumps(schema, separators=(",", ":"))


def asked(talk: Callable[[Registry], Awaitable[None]]) -> None:
    """Talk to a new registry."""

    async def run() -> None:
        async with Registry() as registry:
            await talk(registry)

    asyncio.run(run())


def test_a_schema_gets_an_id_and_is_found_by_all_its_names() -> None:
    async def talk(registry: Registry) -> None:
        made = await registry.post("/subjects/orders-value/versions", {"schema": json.dumps(V1)})
        assert made == {"id": 1, "version": 1, "guid": made["guid"]}
        whole = await registry.get("/subjects/orders-value/versions/1")
        assert whole == {
            "subject": "orders-value",
            "version": 1,
            "id": 1,
            "guid": made["guid"],
            "schema": told(V1),
        }
        assert await registry.get("/subjects/orders-value/versions/latest") == whole
        assert await registry.get("/subjects/orders-value/versions/-1") == whole
        assert await registry.post("/subjects/orders-value", {"schema": json.dumps(V1)}) == whole
        by_id = await registry.get("/schemas/ids/1?fetchMaxId=true")
        assert by_id == {"schema": told(V1), "guid": made["guid"], "maxId": 1}
        assert await registry.get(f"/schemas/guids/{made['guid']}") == {
            "schema": told(V1),
            "guid": made["guid"],
        }
        assert await registry.get(f"/schemas/guids/{made['guid']}/ids") == [
            {"context": ".", "id": 1}
        ]
        assert await registry.get("/schemas") == [whole]
        assert await registry.get("/subjects/orders-value/versions/1/schema") == V1
        assert await registry.get("/schemas/ids/1/schema") == V1

    asked(talk)


def test_the_same_schema_keeps_its_id_and_writes_nothing() -> None:
    async def talk(registry: Registry) -> None:
        assert await registry.register("a", V1) == 1
        written = len(registry.topic.records)
        assert await registry.register("a", V1) == 1
        assert len(registry.topic.records) == written
        assert await registry.register("b", V1) == 1
        assert await registry.register("b", V2) == 2
        assert await registry.get("/schemas/ids/1/subjects") == ["a", "b"]
        assert await registry.get("/schemas/ids/1/versions") == [
            {"subject": "a", "version": 1},
            {"subject": "b", "version": 1},
        ]

    asked(talk)


def test_what_is_incompatible_is_refused_with_its_reasons() -> None:
    async def talk(registry: Registry) -> None:
        await registry.register("orders", V1)
        body = {"schema": json.dumps(BAD)}
        status, code, sentence = await registry.error("POST", "/subjects/orders/versions", body)
        assert (status, code) == (409, 409)
        assert sentence.startswith("Schema being registered is incompatible with an earlier schema")
        check = "/compatibility/subjects/orders/versions"
        assert await registry.post(f"{check}/latest", body) == {"is_compatible": False}
        verdict = await registry.post(f"{check}?verbose=true", body)
        assert not verdict["is_compatible"]
        assert any("READER_FIELD_MISSING_DEFAULT_VALUE" in one for one in verdict["messages"])
        good = {"schema": json.dumps(V2)}
        assert await registry.post(f"{check}/1?verbose=true", good) == {
            "is_compatible": True,
            "messages": [],
        }
        assert (await registry.error("POST", f"{check}/7", good))[1] == 40402
        new = "/compatibility/subjects/new/versions/latest"
        assert await registry.post(new, good) == {"is_compatible": True}

    asked(talk)


def test_levels_are_set_for_the_registry_and_for_a_subject() -> None:
    async def talk(registry: Registry) -> None:
        assert await registry.get("/config") == {"compatibilityLevel": "BACKWARD"}
        full = {"compatibility": "full"}
        assert await registry.put("/config", full) == {"compatibility": "FULL"}
        assert (await registry.error("GET", "/config/orders"))[1] == 40408
        deep = await registry.get("/config/orders?defaultToGlobal=true")
        assert deep == {"compatibilityLevel": "FULL"}
        assert await registry.put("/config/orders", {"compatibility": "NONE"}) == {
            "compatibility": "NONE"
        }
        await registry.register("orders", V1)
        assert await registry.register("orders", BAD) == 2
        assert await registry.delete("/config/orders") == {"compatibilityLevel": "NONE"}
        assert await registry.delete("/config") == {"compatibilityLevel": "FULL"}
        assert await registry.get("/config") == {"compatibilityLevel": "BACKWARD"}
        wrong = await registry.error("PUT", "/config", {"compatibility": "some"})
        assert wrong[:2] == (422, 42203)

    asked(talk)


def test_modes_are_set_for_the_registry_and_for_a_subject() -> None:
    async def talk(registry: Registry) -> None:
        assert await registry.get("/mode") == {"mode": "READWRITE"}
        assert (await registry.error("GET", "/mode/orders"))[1] == 40409
        assert await registry.put("/mode/orders", {"mode": "READONLY"}) == {"mode": "READONLY"}
        body = {"schema": json.dumps(V1)}
        refused = await registry.error("POST", "/subjects/orders/versions", body)
        assert refused == (422, 42205, "Subject orders is in read-only mode")
        assert await registry.delete("/mode/orders") == {"mode": "READONLY"}
        await registry.register("orders", V1)
        refused = await registry.error("PUT", "/mode", {"mode": "IMPORT"})
        assert refused[:2] == (422, 42205)
        assert await registry.put("/mode?force=true", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
        assert await registry.register("orders", BAD, id=77, version=9) == 77
        assert await registry.get("/subjects/orders/versions") == [1, 9]

    asked(talk)


def test_a_version_is_deleted_softly_before_it_is_deleted_for_good() -> None:
    async def talk(registry: Registry) -> None:
        await registry.register("orders", V1)
        await registry.register("orders", V2)
        one = "/subjects/orders/versions/1"
        assert (await registry.error("DELETE", f"{one}?permanent=true"))[1] == 40407
        assert await registry.delete(one) == 1
        assert (await registry.error("DELETE", one))[1] == 40406
        assert (await registry.error("GET", one))[:2] == (404, 40402)
        assert (await registry.get(f"{one}?deleted=true"))["deleted"] is True
        assert await registry.get("/subjects/orders/versions") == [2]
        assert await registry.get("/subjects/orders/versions?deletedOnly=true") == [1]
        assert await registry.delete(f"{one}?permanent=true") == 1
        assert await registry.get("/subjects/orders/versions?deleted=true") == [2]

    asked(talk)


def test_an_id_is_not_given_again_when_its_schema_is_gone_for_good() -> None:
    async def talk(registry: Registry) -> None:
        await registry.register("orders", V1)
        assert await registry.delete("/subjects/orders") == [1]
        assert (await registry.error("DELETE", "/subjects/orders"))[1] == 40404
        assert await registry.get("/subjects") == []
        assert await registry.get("/subjects?deleted=true") == ["orders"]
        assert await registry.delete("/subjects/orders?permanent=true") == [1]
        assert (await registry.error("GET", "/subjects/orders/versions"))[:2] == (404, 40401)
        assert await registry.register("other", V2) == 2

    asked(talk)


def test_a_schema_that_others_refer_to_stays() -> None:
    async def talk(registry: Registry) -> None:
        await registry.register("order", V1)
        line = {"type": "record", "name": "Line", "fields": [{"name": "of", "type": "Order"}]}
        reference = {"name": "Order", "subject": "order", "version": 1}
        assert await registry.register("line", line, references=[reference]) == 2
        assert await registry.get("/subjects/order/versions/1/referencedby") == [2]
        assert (await registry.error("DELETE", "/subjects/order"))[:2] == (422, 42206)

    asked(talk)


def test_contexts_have_ids_of_their_own() -> None:
    async def talk(registry: Registry) -> None:
        assert await registry.register("orders", V1) == 1
        assert await registry.register(":.staging:orders", V2) == 1
        assert await registry.get("/contexts") == [".", ".staging"]
        assert await registry.get("/subjects") == [":.staging:orders", "orders"]
        assert await registry.get("/subjects?subjectPrefix=:.staging:") == [":.staging:orders"]
        assert (await registry.get("/schemas/ids/1?subject=:.staging:orders"))["schema"] == told(V2)
        assert (await registry.get("/schemas/ids/1"))["schema"] == told(V1)

    asked(talk)


def test_names_with_slashes_are_names() -> None:
    async def talk(registry: Registry) -> None:
        await registry.register("a%2Fb", V1)
        assert await registry.get("/subjects") == ["a/b"]
        assert await registry.get("/subjects/a%2Fb/versions") == [1]

    asked(talk)


def test_listings_come_in_pages() -> None:
    async def talk(registry: Registry) -> None:
        for name in "abcd":
            await registry.register(name, V1)
        assert await registry.get("/subjects?offset=1&limit=2") == ["b", "c"]
        assert await registry.get("/subjects?offset=3&limit=-1") == ["d"]
        assert (await registry.error("GET", "/subjects?offset=x"))[0] == 404

    asked(talk)


def test_a_schema_is_found_by_its_metadata() -> None:
    async def talk(registry: Registry) -> None:
        await registry.register("orders", V1, metadata={"properties": {"owner": "sales"}})
        await registry.register("orders", V2, metadata={"properties": {"owner": "stock"}})
        found = await registry.get("/subjects/orders/metadata?key=owner&value=sales")
        assert found["version"] == 1
        none = await registry.error("GET", "/subjects/orders/metadata?key=owner&value=nobody")
        assert none[1] == 40403

    asked(talk)


def test_attributes_in_another_order_are_the_same_when_normalised() -> None:
    async def talk(registry: Registry) -> None:
        texts = [
            '{"type":"record","name":"A","namespace":"n","fields":[]}',
            '{"type":"record","namespace":"n","fields":[],"name":"A"}',
        ]
        path = "/subjects/a/versions?normalize=true"
        ids = [(await registry.post(path, {"schema": text}))["id"] for text in texts]
        assert ids == [1, 1]

    asked(talk)


def test_json_schema_and_its_kind_are_told() -> None:
    async def talk(registry: Registry) -> None:
        body = {"schemaType": "JSON", "schema": '{"type":"object"}'}
        await registry.post("/subjects/j/versions", body)
        found = await registry.get("/schemas/ids/1")
        assert (found["schemaType"], json.loads(found["schema"])) == ("JSON", {"type": "object"})
        assert await registry.get("/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]
        assert await registry.get("/") == {}

    asked(talk)


@pytest.mark.parametrize(
    ("method", "path", "body", "answer"),
    [
        ("GET", "/subjects/x/versions/1", None, (404, 40401, "Subject 'x' not found.")),
        ("GET", "/schemas/ids/9", None, (404, 40403, "Schema 9 not found")),
        ("GET", "/schemas/ids/nine", None, (404, 404, "HTTP 404 Not Found")),
        ("GET", "/schemas/ids/99999999999", None, (404, 404, "HTTP 404 Not Found")),
        ("GET", "/nowhere", None, (404, 404, "HTTP 404 Not Found")),
        ("PUT", "/subjects", {}, (405, 405, "HTTP 405 Method Not Allowed")),
        ("POST", "/subjects/x/versions", {}, (422, 42201, "Empty schema")),
        ("POST", "/subjects/x/versions", [], (400, 400, "The body is no JSON object.")),
    ],
)
def test_errors_have_confluents_codes_and_sentences(
    method: str, path: str, body: object, answer: tuple[int, int, str]
) -> None:
    async def talk(registry: Registry) -> None:
        assert await registry.error(method, path, body) == answer

    asked(talk)


def test_a_version_that_is_none_is_told() -> None:
    async def talk(registry: Registry) -> None:
        await registry.register("x", V1)
        status, code, sentence = await registry.error("GET", "/subjects/x/versions/zero")
        assert (status, code) == (422, 42202)
        assert "'zero' is not a valid version id" in sentence

    asked(talk)


def test_half_a_character_is_refused_before_it_is_written() -> None:
    async def talk(registry: Registry) -> None:
        body = {"schema": '{"type":"string","doc":"\ud800"}'}
        written = len(registry.topic.records)
        assert (await registry.error("POST", "/subjects/x/versions", body))[0] == 400
        assert len(registry.topic.records) == written

    asked(talk)


@pytest.mark.parametrize("media", [MEDIA, "application/json", "application/octet-stream"])
def test_bodies_of_the_known_media_types_are_taken(media: str) -> None:
    async def talk(registry: Registry) -> None:
        body = json.dumps({"schema": json.dumps(V1)})
        path, headers = "/subjects/x/versions", {"content-type": media}
        assert (await registry.http.post(path, content=body, headers=headers)).status_code == 200
        headers = {"content-type": "text/plain"}
        refused = await registry.http.post(path, content=body, headers=headers)
        assert refused.json()["error_code"] == 415

    asked(talk)


def test_an_empty_context_is_deleted_and_its_ids_stay_given() -> None:
    async def run() -> None:
        async with Registry() as registry:
            path = "/contexts/.staging"
            assert (await registry.error("DELETE", path))[:2] == (404, 404)
            assert (await registry.error("DELETE", "/contexts/:.:"))[1] == 42205
            await registry.register(":.staging:orders", record(ID))
            await registry.put("/config/:.staging:", {"compatibility": "NONE"})
            told = await registry.error("DELETE", path)
            assert told == (422, 42211, "Context '.staging' is not empty")
            await registry.delete("/subjects/:.staging:orders")
            assert (await registry.error("DELETE", path))[1] == 42211
            await registry.delete("/subjects/:.staging:orders?permanent=true")
            gone = await registry.http.delete(path)
            assert (gone.status_code, gone.content) == (204, b"")
            assert await registry.get("/contexts") == ["."]
            assert (await registry.error("GET", "/config/:.staging:"))[1] == 40408
            kept = registry.topic.records
        last = {one.key: one for one in kept}  # As compaction leaves it.
        async with Registry(MemoryTopic(sorted(last.values()))) as again:
            assert await again.get("/contexts") == ["."]
            assert await again.register(":.staging:orders", record(NOTE)) == 2
            assert await again.get("/contexts") == [".", ".staging"]

    asyncio.run(run())


def test_the_registry_says_which_it_is() -> None:
    async def run() -> None:
        async with Registry() as registry:
            told = await registry.get("/v1/metadata/id")
            clusters = {"kafka-cluster": "", "schema-registry-cluster": "schema-registry"}
            assert told == {"scope": {"path": [], "clusters": clusters}, "id": ""}
            assert (await registry.get("/v1/metadata/version"))["version"]

    asyncio.run(run())


def test_a_schema_is_told_with_what_it_refers_to() -> None:
    async def run() -> None:
        async with Registry() as registry:
            coin = {"type": "enum", "name": "shop.Coin", "symbols": ["EUR"]}
            await registry.register("coin", coin)
            reference = {"name": "shop.Coin", "subject": "coin", "version": 1}
            fields = [{"name": name, "type": "shop.Coin"} for name in ("paid", "due")]
            schema_id = await registry.register("order", record(*fields), references=[reference])
            found = await registry.get(f"/schemas/ids/{schema_id}?format=resolved")
            paid, due = json.loads(found["schema"])["fields"]
            assert paid["type"] == {
                "type": "enum",
                "name": "Coin",
                "namespace": "shop",
                "symbols": ["EUR"],
            }
            assert due["type"] == "shop.Coin"
            plain = await registry.get(f"/schemas/ids/{schema_id}?format=other")
            assert json.loads(plain["schema"])["fields"][0]["type"] == "shop.Coin"

    asyncio.run(run())


def test_who_has_no_password_gets_no_answer() -> None:
    async def run() -> None:
        users = {"alice": HttpUser(password="secret", roles=frozenset({"admin"}))}
        guard = BasicAuth(users, realm="SchemaRegistry")
        async with Registry(guard=guard) as registry:
            got = await registry.http.get("/subjects")
            assert got.status_code == 401
            assert got.headers["www-authenticate"] == 'Basic realm="SchemaRegistry"'
            assert got.json() == {"error_code": 401, "message": "Unauthorized"}
            assert (await registry.http.get("/-/ready")).status_code == 200
            mine = httpx.BasicAuth("alice", "secret")
            assert (await registry.http.get("/subjects", auth=mine)).json() == []

    asyncio.run(run())
