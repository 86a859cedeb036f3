"""The routes below `/subjects` and `/compatibility`: register, look up, check, list, delete."""

from typing import Any

from penstock.http.bodies import json_answer
from penstock.http.handlers import Request, Response, Route
from penstock.registry.deleting import delete_subject, delete_version
from penstock.registry.finding import (
    find_latest_with,
    list_referrers,
    list_subjects,
    list_versions,
)
from penstock.registry.registering import (
    CompatibilityVerdict,
    SchemaRequest,
    check_compatibility,
    find_version,
    look_up,
    parse_version,
    register,
)
from penstock.registry.schema import SchemaVersion
from penstock.registry.service.documents import registered_document, version_document
from penstock.registry.service.forms import in_form
from penstock.registry.service.forwarding import LeaderWrites
from penstock.registry.service.requests import (
    flag,
    page,
    plain_text,
    read_document,
    shown,
    subject_of,
    version_of,
)
from penstock.registry.service.store import SchemaStore
from penstock.registry.settings import aliased
from penstock.registry.state import RegistryState
from penstock.schemas.definitions.parse import parse_definition

_ALL_CONTEXTS = ":*:"
_SUBJECT = "/subjects/{subject:segment}"
_VERSIONS = f"{_SUBJECT}/versions"
_VERSION = f"{_VERSIONS}/{{version:segment}}"
_CHECK = "/compatibility/subjects/{subject:segment}/versions"


class SubjectRoutes:
    """Handlers for one store."""

    def __init__(self, store: SchemaStore, writes: LeaderWrites) -> None:
        self._store = store
        self._writes = writes

    def routes(self) -> list[Route]:
        by_leader = self._writes.by_leader
        registering = by_leader(self._register, known=self._find_registered)
        return [
            Route("/subjects", self._list, methods=["GET"]),
            Route(_SUBJECT, self._look_up, methods=["POST"]),
            Route(_SUBJECT, by_leader(self._delete), methods=["DELETE"]),
            Route(f"{_SUBJECT}/metadata", self._find_by_metadata, methods=["GET"]),
            Route(_VERSIONS, self._list_versions, methods=["GET"]),
            Route(_VERSIONS, registering, methods=["POST"]),
            Route(_VERSION, self._find, methods=["GET"]),
            Route(_VERSION, by_leader(self._delete_version), methods=["DELETE"]),
            Route(f"{_VERSION}/schema", self._find_text, methods=["GET"]),
            Route(f"{_VERSION}/referencedby", self._list_referrers, methods=["GET"]),
            Route(_CHECK, self._check, methods=["POST"]),
            Route(f"{_CHECK}/{{version:segment}}", self._check, methods=["POST"]),
        ]

    async def _list(self, request: Request) -> Response:
        prefix = request.query_params.get("subjectPrefix", _ALL_CONTEXTS)
        found = list_subjects(self._store.state, prefix, shown(request))
        return json_answer(request, page(request, found))

    async def _list_versions(self, request: Request) -> Response:
        found = list_versions(self._store.state, subject_of(request), shown(request))
        return json_answer(request, page(request, found))

    async def _find(self, request: Request) -> Response:
        return json_answer(request, await self._document(request, self._version(request)))

    async def _find_text(self, request: Request) -> Response:
        return plain_text((await self._document(request, self._version(request)))["schema"])

    async def _find_by_metadata(self, request: Request) -> Response:
        parameters = request.query_params
        wanted = zip(parameters.getlist("key"), parameters.getlist("value"), strict=False)
        found = find_latest_with(
            self._store.state, subject_of(request), dict(wanted), deleted=flag(request, "deleted")
        )
        return json_answer(request, await self._document(request, found))

    async def _list_referrers(self, request: Request) -> Response:
        found = list_referrers(self._store.state, subject_of(request), version_of(request))
        return json_answer(request, page(request, found))

    async def _find_registered(self, request: Request) -> Response | None:
        """What a subject has is told by any instance, and costs the leader nothing."""
        wanted, subject = await _schema_of(request), subject_of(request)
        found = await self._store.find_done(
            lambda state: register(state, subject, wanted, parse_definition)
        )
        if found is None:
            return None
        return json_answer(request, registered_document(found.version, wanted))

    async def _register(self, request: Request) -> Response:
        wanted, subject = await _schema_of(request), subject_of(request)
        made = await self._store.change(
            lambda state: register(state, subject, wanted, parse_definition)
        )
        return json_answer(request, registered_document(made.version, wanted))

    async def _look_up(self, request: Request) -> Response:
        wanted, subject = await _schema_of(request), subject_of(request)
        deleted = flag(request, "deleted")
        found = await self._store.ask(
            lambda state: look_up(state, subject, wanted, parse_definition, deleted=deleted)
        )
        return json_answer(request, await self._document(request, found))

    async def _check(self, request: Request) -> Response:
        wanted, subject = await _schema_of(request), subject_of(request)
        version = request.path_params.get("version")
        verdict = await self._store.ask(lambda state: _judge(state, subject, wanted, version))
        told: dict[str, object] = {"is_compatible": verdict.is_compatible}
        if flag(request, "verbose"):
            told["messages"] = list(verdict.messages)
        return json_answer(request, told)

    async def _delete(self, request: Request) -> Response:
        subject, permanent = subject_of(request), flag(request, "permanent")
        done = await self._store.change(
            lambda state: delete_subject(state, subject, permanent=permanent)
        )
        return json_answer(request, list(done.versions))

    async def _delete_version(self, request: Request) -> Response:
        subject, version = subject_of(request), version_of(request)
        permanent = flag(request, "permanent")
        done = await self._store.change(
            lambda state: delete_version(state, subject, version, permanent=permanent)
        )
        return json_answer(request, done.versions[0])

    async def _document(self, request: Request, one: SchemaVersion) -> dict[str, Any]:
        """A version, its schema in the form that is asked for."""
        return await in_form(
            self._store, request, version_document(one), subject=one.subject, content=one.content
        )

    def _version(self, request: Request) -> SchemaVersion:
        return find_version(
            self._store.state,
            subject_of(request),
            version_of(request),
            deleted=flag(request, "deleted"),
        )


async def _schema_of(request: Request) -> SchemaRequest:
    return SchemaRequest.of(await read_document(request), normalize=flag(request, "normalize"))


def _judge(
    state: RegistryState, subject: str, wanted: SchemaRequest, version: str | None
) -> CompatibilityVerdict:
    """Whatever follows nothing is compatible with the latest of a subject without versions."""
    is_latest = version is not None and parse_version(version) is None
    if is_latest and not state.live(aliased(state, subject)):
        version = None
    return check_compatibility(state, subject, wanted, parse_definition, version=version)
