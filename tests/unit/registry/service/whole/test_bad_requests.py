"""Requests made to harm: each gets Confluent's code and a sentence, and the next one is served."""

import asyncio
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.registry.service.rig import ID, MEDIA, NOTE, MemoryTopic, Registry, record

from penstock.registry.records import StoreRecord, schema_record
from penstock.registry.schema import SchemaContent, SchemaReference, SchemaVersion

PATH = "/subjects/orders/versions"
DEEP = 10_000


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


async def posted(registry: Registry, content: bytes | str, path: str = PATH) -> tuple[int, int]:
    got = await registry.http.post(path, content=content, headers={"content-type": MEDIA})
    return got.status_code, got.json().get("error_code", 0)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[" * 100_000, (400, 400)),
        (nested(DEEP), (400, 400)),
        (f'{{"schema": {json.dumps(nested(DEEP))}}}', (422, 42201)),
        (f'{{"schema": {json.dumps(nested(DEEP))}, "schemaType": "JSON"}}', (422, 42201)),
        (f'{{"schema": "\\"int\\"", "metadata": {nested(900)}}}', (200, 0)),
        (f'{{"schema": "\\"int\\"", "metadata": {{"tags": {nested(900)}}}}}', (422, 42201)),
        (f'{{"schema": "\\"int\\"", "ruleSet": {{"domainRules": [{nested(900)}]}}}}', (422, 42210)),
        ('{"schema": "\\"int\\"", "references": [[]]}', (422, 42201)),
        ('{"schema": "\\"int\\"", "version": 1e999}', (422, 42201)),
        ('{"schema": "\\"int\\"", "id": 99999999999999999999}', (422, 42201)),
        ('{"schema": 5}', (422, 42201)),
        ("null", (400, 400)),
        (b"\xff\xfe\x00", (400, 400)),
    ],
)
def test_bodies_that_nest_or_lie_are_refused(
    content: bytes | str, expected: tuple[int, int]
) -> None:
    async def run() -> None:
        async with Registry() as registry:
            assert await posted(registry, content) == expected
            assert await registry.register("other", record(ID)) > 0

    asyncio.run(run())


def test_a_body_cut_at_any_byte_is_refused() -> None:
    whole = json.dumps({"schema": json.dumps(record(ID, NOTE)), "schemaType": "AVRO"}).encode()

    async def run() -> None:
        async with Registry() as registry:
            for end in range(len(whole)):
                assert (await posted(registry, whole[:end]))[0] == 400
            assert await registry.get("/subjects") == []

    asyncio.run(run())


def test_huge_enums_are_compared_through_the_interface() -> None:
    def enum(first: int) -> dict[str, Any]:
        symbols = [f"S{n}" for n in range(first, first + 30_000)]
        return {"type": "enum", "name": "E", "symbols": symbols}

    async def run() -> None:
        async with Registry() as registry:
            await registry.register("enum", enum(0))
            body = {"schema": json.dumps(enum(1))}
            status, code, sentence = await registry.error("POST", "/subjects/enum/versions", body)
            assert (status, code) == (409, 409)
            assert len(sentence) < 2_000_000

    asyncio.run(run())


def test_references_in_a_ring_are_read_once_each() -> None:
    """An import, or another registry, can write what registering refuses."""

    def version(subject: str, to: str, number: int) -> StoreRecord:
        content = SchemaContent(
            text=json.dumps({"type": "record", "name": subject, "fields": []}),
            references=(SchemaReference(name=to, subject=to, version=1),),
        )
        made = SchemaVersion(subject=subject, version=1, schema_id=number, content=content)
        return schema_record(made)

    async def run() -> None:
        topic = MemoryTopic()
        topic.put(version("A", "B", 1))
        topic.put(version("B", "A", 2))
        async with Registry(topic) as registry:
            body = {
                "schema": json.dumps(record({"name": "a", "type": "A"})),
                "references": [{"name": "A", "subject": "A", "version": 1}],
            }
            assert (await registry.ask("POST", "/subjects/new/versions", body))[0] == 200
            told = await registry.error("GET", "/schemas/ids/1?format=resolved")
            assert told[:2] == (422, 42201)  # It would declare itself twice.
            own = {"name": "Order", "subject": "own", "version": 1}
            again = {"schema": json.dumps(record(ID)), "references": [own]}
            assert (await registry.error("POST", "/subjects/own/versions", again))[1] == 42201

    asyncio.run(run())


def test_references_that_lead_on_and_on_are_refused() -> None:
    async def run() -> None:
        async with Registry() as registry:
            codes = []
            for n in range(80):
                fields = [{"name": "f", "type": f"R{n - 1}"}] if n else []
                schema = {"type": "record", "name": f"R{n}", "fields": fields}
                reference = {"name": f"R{n - 1}", "subject": f"s{n - 1}", "version": 1}
                body = {"schema": json.dumps(schema), "references": [reference] if n else []}
                status, told = await registry.ask("POST", f"/subjects/s{n}/versions", body)
                codes.append((status, told.get("error_code", 0)))
                if status != 200:
                    break
            assert codes[-1] == (422, 42201)
            assert len(codes) > 50

    asyncio.run(run())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "syntax",
        'syntax = "proto3"; ' + "message M {" * 5_000,
        'syntax = "proto3"; message M { ' + "".join(f"int32 f{n} = 1; " for n in range(99)) + "}",
        'syntax = "proto3"; import "../../etc/passwd"; message M {}',
        'syntax = "proto3"; import "x.proto"; message M {}',
        "\x00" * 100,
        "Cg==",
    ],
)
def test_protobuf_that_harms_its_compiler_harms_nobody_else(text: str) -> None:
    pytest.importorskip("grpc_tools")

    async def run() -> None:
        async with Registry() as registry:
            body = {"schema": text, "schemaType": "PROTOBUF"}
            assert (await registry.error("POST", PATH, body))[1] == 42201
            assert await registry.register("other", record(ID)) == 1

    asyncio.run(run())


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=20).filter(lambda text: text not in (".", "..")))
def test_any_subject_is_a_subject_or_refused(subject: str) -> None:
    try:
        path = f"/subjects/{quote(subject, safe='')}"
    except UnicodeEncodeError:
        return  # Half a character cannot be sent.

    async def run() -> None:
        async with Registry() as registry:
            body = {"schema": '"int"'}
            status, told = await registry.ask("POST", f"{path}/versions", body)
            if status == 200:
                assert await registry.get(f"{path}/versions") == [1]
                names = await registry.get("/subjects")
                assert names in ([subject], [subject.removeprefix(":.:")])
                assert await registry.delete(path) == [1]
            else:
                assert told["error_code"] in (404, 42208)

    asyncio.run(run())
