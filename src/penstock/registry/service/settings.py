"""The routes `/config` and `/mode`: of the registry, of a context, of a subject."""

from penstock.http.bodies import json_answer
from penstock.http.handlers import Request, Response, Route
from penstock.registry.service.documents import updated_config
from penstock.registry.service.forwarding import LeaderWrites
from penstock.registry.service.requests import flag, read_document
from penstock.registry.service.store import SchemaStore
from penstock.registry.settings import (
    change_config,
    change_mode,
    config_of,
    delete_config,
    delete_mode,
    mode_of,
)

_OF_SUBJECT = "/{subject:segment}"


class SettingRoutes:
    """Handlers for one store."""

    def __init__(self, store: SchemaStore, writes: LeaderWrites) -> None:
        self._store = store
        self._writes = writes

    def routes(self) -> list[Route]:
        by_leader = self._writes.by_leader
        delete_mode = by_leader(self._delete_mode)
        found = [Route(f"/mode{_OF_SUBJECT}", delete_mode, methods=["DELETE"])]
        for end in ("", _OF_SUBJECT):
            found += [
                Route(f"/config{end}", self._config, methods=["GET"]),
                Route(f"/config{end}", by_leader(self._change_config), methods=["PUT"]),
                Route(f"/config{end}", by_leader(self._delete_config), methods=["DELETE"]),
                Route(f"/mode{end}", self._mode, methods=["GET"]),
                Route(f"/mode{end}", by_leader(self._change_mode), methods=["PUT"]),
            ]
        return found

    async def _config(self, request: Request) -> Response:
        is_deep = flag(request, "defaultToGlobal")
        found = config_of(self._store.state, _subject(request), default_to_global=is_deep)
        return json_answer(request, dict(found))

    async def _change_config(self, request: Request) -> Response:
        wanted, subject = await read_document(request), _subject(request)
        done = await self._store.change(lambda state: change_config(state, subject, wanted))
        return json_answer(request, updated_config(done.answer))

    async def _delete_config(self, request: Request) -> Response:
        subject = _subject(request)
        done = await self._store.change(lambda state: delete_config(state, subject))
        return json_answer(request, dict(done.answer))

    async def _mode(self, request: Request) -> Response:
        is_deep = flag(request, "defaultToGlobal")
        found = mode_of(self._store.state, _subject(request), default_to_global=is_deep)
        return json_answer(request, {"mode": found.value})

    async def _change_mode(self, request: Request) -> Response:
        wanted, subject = await read_document(request), _subject(request)
        force = flag(request, "force")
        done = await self._store.change(
            lambda state: change_mode(state, subject, wanted.get("mode"), force=force)
        )
        return json_answer(request, dict(done.answer))

    async def _delete_mode(self, request: Request) -> Response:
        subject = _subject(request)
        done = await self._store.change(lambda state: delete_mode(state, subject))
        return json_answer(request, dict(done.answer))


def _subject(request: Request) -> str | None:
    """None: the registry as a whole."""
    found = request.path_params.get("subject")
    return None if found is None else str(found)
