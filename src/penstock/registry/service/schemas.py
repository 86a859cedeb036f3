"""The routes below `/schemas` and `/contexts`: what is known by id, by guid, by kind."""

from typing import Any

from penstock.http.bodies import json_answer
from penstock.http.handlers import Request, Response, Route
from penstock.registry.deleting import delete_context
from penstock.registry.finding import (
    find_guid,
    find_highest_id,
    find_schema,
    list_contexts,
    list_guid_ids,
    list_places,
    list_schemas,
)
from penstock.registry.schema import SchemaContent, SchemaVersion
from penstock.registry.service.documents import schema_document, version_document
from penstock.registry.service.forms import in_form
from penstock.registry.service.forwarding import LeaderWrites
from penstock.registry.service.requests import (
    flag,
    page,
    plain_text,
    schema_id_of,
    shown,
)
from penstock.registry.service.store import SchemaStore
from penstock.registry.subjects import qualify

_KINDS = ("JSON", "PROTOBUF", "AVRO")
_ID = "/schemas/ids/{id:segment}"
_GUID = "/schemas/guids/{guid:segment}"


class SchemaRoutes:
    """Handlers for one store."""

    def __init__(self, store: SchemaStore, writes: LeaderWrites) -> None:
        self._store = store
        self._writes = writes

    def routes(self) -> list[Route]:
        return [
            Route(_ID, self._find, methods=["GET"]),
            Route("/schemas", self._list, methods=["GET"]),
            Route("/schemas/types", _list_kinds, methods=["GET"]),
            Route(f"{_ID}/schema", self._find_text, methods=["GET"]),
            Route(f"{_ID}/subjects", self._list_subjects, methods=["GET"]),
            Route(f"{_ID}/versions", self._list_versions, methods=["GET"]),
            Route(_GUID, self._find_guid, methods=["GET"]),
            Route(f"{_GUID}/ids", self._list_guid_ids, methods=["GET"]),
            Route("/contexts", self._list_contexts, methods=["GET"]),
            Route(
                "/contexts/{context:segment}",
                self._writes.by_leader(self._delete_context),
                methods=["DELETE"],
            ),
        ]

    async def _list(self, request: Request) -> Response:
        prefix = request.query_params.get("subjectPrefix", "")
        latest_only = flag(request, "latestOnly")
        found = list_schemas(self._store.state, prefix, shown(request), latest_only=latest_only)
        return json_answer(request, [version_document(one) for one in page(request, found)])

    async def _find(self, request: Request) -> Response:
        told = await self._document(request, self._content(request))
        if flag(request, "fetchMaxId"):
            context = qualify(request.query_params.get("subject", "")).context
            told["maxId"] = find_highest_id(self._store.state, [context])
        return json_answer(request, told)

    async def _find_text(self, request: Request) -> Response:
        return plain_text((await self._document(request, self._content(request)))["schema"])

    async def _list_subjects(self, request: Request) -> Response:
        names = sorted({one.subject for one in self._places(request)})
        return json_answer(request, page(request, names))

    async def _list_versions(self, request: Request) -> Response:
        found = [{"subject": one.subject, "version": one.version} for one in self._places(request)]
        return json_answer(request, page(request, found))

    async def _find_guid(self, request: Request) -> Response:
        found = find_guid(self._store.state, request.path_params["guid"])
        return json_answer(request, await self._document(request, found))

    async def _list_guid_ids(self, request: Request) -> Response:
        found = list_guid_ids(self._store.state, request.path_params["guid"])
        return json_answer(request, [{"context": context, "id": one} for context, one in found])

    async def _list_contexts(self, request: Request) -> Response:
        return json_answer(request, page(request, list_contexts(self._store.state)))

    async def _delete_context(self, request: Request) -> Response:
        context = str(request.path_params["context"])
        await self._store.change(lambda state: delete_context(state, context))
        return Response(status_code=204)

    async def _document(self, request: Request, content: SchemaContent) -> dict[str, Any]:
        """A schema in the form that is asked for."""
        subject = request.query_params.get("subject", "")
        told = schema_document(content)
        return await in_form(self._store, request, told, subject=subject, content=content)

    def _content(self, request: Request) -> SchemaContent:
        subject = request.query_params.get("subject")
        return find_schema(self._store.state, schema_id_of(request), subject)

    def _places(self, request: Request) -> list[SchemaVersion]:
        subject = request.query_params.get("subject")
        return list_places(
            self._store.state, schema_id_of(request), subject, deleted=flag(request, "deleted")
        )


async def _list_kinds(request: Request) -> Response:
    return json_answer(request, _KINDS)
