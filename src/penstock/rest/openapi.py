"""What the proxy serves, as an OpenAPI document and as a page to read.

One table says it all: `tests/unit/rest/test_openapi.py` holds it against the routes. The page has
nothing from other hosts, no script, and is made from the same table.
"""

import re
from html import escape
from typing import Any, NamedTuple

from penstock import __version__
from penstock.http.handlers import Request, Response, Route
from penstock.rest.json_text import dumps

_C = "/v3/clusters/{cluster}"
_T = _C + "/topics/{topic}"
_P = _T + "/partitions/{partition}"
_G = _C + "/consumer-groups/{group}"
_I = "/consumers/{group}/instances/{instance}"
_OF_PARTITION = "/{topic}/partitions/{partition}"
_JSON = "application/json"
_V2 = "application/vnd.kafka.v2+json"
_NUMBERS = {"partition", "broker"}
_PAGE_HEADERS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}


class ApiCall(NamedTuple):
    """One thing that can be asked for."""

    method: str
    path: str
    summary: str
    body: str | None = None  # The name of a schema below.
    query: tuple[str, ...] = ()
    status: int = 200


_ACL_FILTER = (
    "resource_type", "resource_name", "pattern_type", "principal", "host", "operation",
    "permission",
)  # fmt: skip
_FORMATS = ("key_format", "value_format")

_CONFIG_OWNERS = (
    (_T + "/configs", "a topic"),
    (_C + "/brokers/{broker}/configs", "a broker"),
    (_C + "/broker-configs", "all brokers"),
)

V3 = (
    ApiCall("GET", "/v3/clusters", "The clusters: the one that this proxy serves"),
    ApiCall("GET", _C, "A cluster"),
    ApiCall("GET", _C + "/acls", "Search access rules", query=_ACL_FILTER),
    ApiCall("POST", _C + "/acls", "Create an access rule", "Acl", status=201),
    ApiCall("DELETE", _C + "/acls", "Delete the access rules that match", query=_ACL_FILTER),
    ApiCall("POST", _C + "/acls:batch", "Create access rules", "Acls", status=201),
    ApiCall("GET", _C + "/brokers", "The brokers"),
    ApiCall("GET", _C + "/brokers/{broker}", "A broker"),
    ApiCall("GET", _C + "/brokers/{broker}/partition-replicas", "The replicas of a broker"),
    ApiCall("GET", _C + "/brokers/-/configs", "Settings of brokers changed while they ran"),
    ApiCall("GET", _C + "/topics/-/configs", "The settings of all topics"),
    *(
        operation
        for path, whose in _CONFIG_OWNERS
        for operation in (
            ApiCall("GET", path, f"The settings of {whose}"),
            ApiCall(
                "POST", path + ":alter", f"Change settings of {whose}", "Changes", status=204
            ),
            ApiCall("GET", path + "/{name}", f"A setting of {whose}"),
            ApiCall("PUT", path + "/{name}", f"Set a setting of {whose}", "Value", status=204),
            ApiCall("DELETE", path + "/{name}", f"Reset a setting of {whose}", status=204),
        )
    ),
    ApiCall("GET", _C + "/topics", "The topics"),
    ApiCall("POST", _C + "/topics", "Create a topic", "NewTopic", status=201),
    ApiCall("GET", _T, "A topic"),
    ApiCall("PATCH", _T, "Give a topic more partitions", "PartitionsCount"),
    ApiCall("DELETE", _T, "Delete a topic", status=204),
    ApiCall("GET", _T + "/partitions", "The partitions of a topic"),
    ApiCall("GET", _P, "A partition"),
    ApiCall("GET", _P + "/offset", "The first and the last offset of a partition"),
    ApiCall("GET", _P + "/offsets", "The same"),
    ApiCall("GET", _P + "/replicas", "The replicas of a partition"),
    ApiCall("GET", _P + "/replicas/{broker}", "A replica"),
    ApiCall("GET", _P + "/reassignment", "The move of a partition"),
    ApiCall("GET", _T + "/partitions/-/reassignment", "The moves of a topic's partitions"),
    ApiCall("GET", _C + "/topics/-/partitions/-/reassignment", "All moves under way"),
    ApiCall("POST", _T + "/records", "Produce: records one after the other in a body of any "
              "length, a receipt for each while the body is still coming", "Record"),
    ApiCall("POST", _T + "/records:batch", "Produce several records, each with an id",
              "RecordBatch", status=207),
    ApiCall("GET", _P + "/records", "Records of a partition by offset",
              query=("offset", "limit", "timeout", *_FORMATS)),
    ApiCall("GET", _T + "/records:stream", "Records as they come: SSE, NDJSON (by Accept) or "
              "WebSocket", query=("from", "key", "key_base64", *_FORMATS)),
    ApiCall("GET", _C + "/consumer-groups", "The consumer groups"),
    ApiCall("GET", _G, "A consumer group"),
    ApiCall("GET", _G + "/consumers", "The consumers of a group"),
    ApiCall("GET", _G + "/consumers/{consumer}", "A consumer"),
    ApiCall("GET", _G + "/consumers/{consumer}/assignments", "The partitions of a consumer"),
    ApiCall("GET", _G + "/consumers/{consumer}/assignments" + _OF_PARTITION,
              "A partition of a consumer"),
    ApiCall("GET", _G + "/lag-summary", "How far a group is behind"),
    ApiCall("GET", _G + "/lags", "How far a group is behind, by partition"),
    ApiCall("GET", _G + "/lags" + _OF_PARTITION, "How far a group is behind in a partition"),
)  # fmt: skip

V2 = (
    ApiCall("GET", "/", "That the proxy is there"),
    ApiCall("GET", "/brokers", "The ids of the brokers"),
    ApiCall("GET", "/topics", "The names of the topics"),
    ApiCall("GET", "/topics/{topic}", "A topic"),
    ApiCall("POST", "/topics/{topic}", "Produce", "V2Records"),
    ApiCall("GET", "/topics/{topic}/partitions", "The partitions of a topic"),
    ApiCall("GET", "/topics/{topic}/partitions/{partition}", "A partition"),
    ApiCall("POST", "/topics/{topic}/partitions/{partition}", "Produce to one partition",
              "V2Records"),
    ApiCall("GET", "/topics/{topic}/partitions/{partition}/offsets", "Its first and last offset"),
    ApiCall("POST", "/consumers/{group}", "Make a consumer", "Object"),
    ApiCall("DELETE", _I, "End a consumer", status=204),
    ApiCall("POST", _I + "/subscription", "Subscribe to topics", "Object", status=204),
    ApiCall("GET", _I + "/subscription", "What it has subscribed to"),
    ApiCall("DELETE", _I + "/subscription", "Unsubscribe", status=204),
    ApiCall("POST", _I + "/assignments", "Assign partitions", "Object", status=204),
    ApiCall("GET", _I + "/assignments", "What it was assigned"),
    ApiCall("POST", _I + "/positions", "Seek", "Object", status=204),
    ApiCall("POST", _I + "/positions/beginning", "Seek to the beginning", "Object", status=204),
    ApiCall("POST", _I + "/positions/end", "Seek to the end", "Object", status=204),
    ApiCall("GET", _I + "/records", "The next records", query=("timeout", "max_bytes")),
    ApiCall("POST", _I + "/offsets", "Commit", "Object"),
    ApiCall("GET", _I + "/offsets", "What was committed", "Object"),
)  # fmt: skip

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_FLAG = {"type": "boolean"}


def _object(*required: str, **properties: object) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": properties}
    return found | ({"required": list(required)} if required else {})


def _list(items: object) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_OPERATIONS = ["SET", "DELETE", "APPEND", "SUBTRACT"]
_CHANGE = _object(
    "name",
    name=_TEXT,
    value=_TEXT,
    operation=_TEXT | {"enum": _OPERATIONS},
)
_ASSIGNMENT = _object("partition_id", "broker_ids", partition_id=_NUMBER, broker_ids=_list(_NUMBER))
SCHEMAS: dict[str, dict[str, Any]] = {
    "Error": _object("error_code", "message", error_code=_NUMBER, message=_TEXT),
    "Object": {"type": "object"},
    "Acl": _object(*(name for name in _ACL_FILTER if name != "resource_name"),
                   **dict.fromkeys(_ACL_FILTER, _TEXT)),
    "Acls": _object("data", data=_list(_ref("Acl"))),
    "Value": _object(value=_TEXT),
    "Changes": _object("data", data=_list(_CHANGE), validate_only=_FLAG),
    "NewTopic": _object(
        "topic_name", topic_name=_TEXT, partitions_count=_NUMBER, replication_factor=_NUMBER,
        replicas_assignments=_list(_ASSIGNMENT), configs=_list(_CHANGE), validate_only=_FLAG,
    ),
    "PartitionsCount": _object("partitions_count", partitions_count=_NUMBER),
    "Side": _object(
        type=_TEXT | {"enum": ["BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF"]},
        data={}, subject=_TEXT, schema_id=_NUMBER, schema_version=_NUMBER, schema=_TEXT,
        subject_name_strategy=_TEXT
        | {"enum": ["TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME"]},
    ),
    "Header": _object("name", name=_TEXT, value=_TEXT | {"format": "byte"}),
    "Record": _object(
        partition_id=_NUMBER, headers=_list(_ref("Header")), key=_ref("Side"), value=_ref("Side"),
        timestamp=_TEXT | {"format": "date-time"},
    ),
    "RecordBatch": _object(
        "entries",
        entries=_list({"allOf": [_ref("Record"), _object("id", id=_TEXT)]}),
    ),
    "V2Records": _object(
        "records", records=_list(_object(key={}, value={}, partition=_NUMBER)),
        key_schema=_TEXT, key_schema_id=_NUMBER, value_schema=_TEXT, value_schema_id=_NUMBER,
    ),
}  # fmt: skip


def document() -> dict[str, Any]:
    """The OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for tag, operations, media in (("v3", V3, _JSON), ("v2", V2, _V2)):
        for one in operations:
            paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, tag, media)
    return {
        "openapi": "3.0.3",
        "info": {"title": "Penstock REST proxy", "version": __version__},
        "paths": paths,
        "components": {"schemas": SCHEMAS},
    }


def page() -> str:
    """The same to read."""
    rows = "".join(
        f"<tr><td>{one.method}</td><td><code>{escape(one.path)}</code></td>"
        f"<td>{escape(one.summary)}{_parameters(one)}</td></tr>"
        for one in (*V3, *V2)
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Penstock REST proxy</title>"
        "<style>body{font:16px/1.5 system-ui,sans-serif;margin:2rem;color-scheme:light dark}"
        "td{padding:.2rem .8rem;vertical-align:top;border-top:1px solid #8884}</style>"
        f"<h1>Penstock REST proxy {escape(__version__)}</h1>"
        "<p>The same for programs: <a href=/openapi.json>openapi.json</a>.</p>"
        f"<table>{rows}</table></html>"
    )


def routes() -> list[Route]:
    """The document and the page."""
    return [
        Route("/openapi.json", _document, methods=["GET"]),
        Route("/openapi", _page, methods=["GET"]),
    ]


async def _document(request: Request) -> Response:
    return Response(dumps(document()), media_type=_JSON)


async def _page(request: Request) -> Response:
    return Response(page(), media_type="text/html", headers=_PAGE_HEADERS)


def _operation(one: ApiCall, tag: str, media: str) -> dict[str, Any]:
    error = {"description": "Why not", "content": {media: {"schema": _ref("Error")}}}
    done = {"description": "Done"}
    found: dict[str, Any] = {
        "tags": [tag],
        "summary": one.summary,
        "parameters": [
            *(_path_parameter(name) for name in re.findall(r"\{(\w+)\}", one.path)),
            *({"name": name, "in": "query", "schema": _TEXT} for name in one.query),
        ],
        "responses": {str(one.status): done, "4XX": error, "5XX": error},
    }
    if one.body is not None:
        found["requestBody"] = {"content": {media: {"schema": _ref(one.body)}}}
    return found


def _path_parameter(name: str) -> dict[str, Any]:
    schema = _NUMBER if name in _NUMBERS else _TEXT
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _parameters(one: ApiCall) -> str:
    said = [*one.query, *([f"body: {one.body}"] if one.body else [])]
    return f" <small>({escape(', '.join(said))})</small>" if said else ""
