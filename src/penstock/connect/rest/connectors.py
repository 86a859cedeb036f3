"""The routes of connectors: what they are, what they do, how far they are."""

from typing import Any
from urllib.parse import quote

from penstock.connect.herder.refusals import RequestRefused
from penstock.connect.herder.requests import ConnectRequests
from penstock.connect.rest.documents import (
    call,
    config_of,
    empty,
    is_set,
    read_configs,
    read_document,
    refuse_others,
    text_of,
)
from penstock.connect.rest.forwarding import Forwarding
from penstock.connect.store.config_records import TargetState
from penstock.connect.store.status_records import TaskId
from penstock.http.bodies import json_answer, read_body
from penstock.http.errors import HttpError
from penstock.http.handlers import Request, Response, Route

_INITIAL = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED,
            "STOPPED": TargetState.STOPPED}  # fmt: skip
_DIGITS_MAX = 9
_OF_A_NEW_ONE = ("config", "name", "initial_state")


class ConnectorRoutes:
    """Each method is a route."""

    def __init__(self, requests: ConnectRequests, forwarding: Forwarding) -> None:
        self._ask = requests
        self._forwarding = forwarding

    def routes(self) -> list[Route]:
        """All of them."""
        at = "/connectors/{connector:segment}"
        table = (
            ("GET", "/connectors", self._list),
            ("POST", "/connectors", self._create),
            ("GET", at, self._info),
            ("DELETE", at, self._delete),
            ("GET", f"{at}/config", self._config),
            ("PUT", f"{at}/config", self._put_config),
            ("PATCH", f"{at}/config", self._patch_config),
            ("GET", f"{at}/status", self._status),
            ("POST", f"{at}/restart", self._restart),
            ("PUT", f"{at}/pause", self._pause),
            ("PUT", f"{at}/resume", self._resume),
            ("PUT", f"{at}/stop", self._stop),
            ("GET", f"{at}/tasks", self._tasks),
            ("POST", f"{at}/tasks", self._put_tasks),
            ("PUT", f"{at}/fence", self._fence),
            ("GET", f"{at}/tasks/{{task:segment}}/status", self._task_status),
            ("POST", f"{at}/tasks/{{task:segment}}/restart", self._restart_task),
            ("GET", f"{at}/topics", self._topics),
            ("PUT", f"{at}/topics/reset", self._reset_topics),
            ("GET", f"{at}/offsets", self._offsets),
            ("PATCH", f"{at}/offsets", self._alter_offsets),
            ("DELETE", f"{at}/offsets", self._reset_offsets),
        )
        paths: dict[str, dict[str, Any]] = {}
        for method, path, handler in table:
            paths.setdefault(path, {})[method] = handler
        return [self._route(path, handlers) for path, handlers in paths.items()]

    def _route(self, path: str, handlers: dict[str, Any]) -> Route:
        """One route a path, with the methods that it has."""

        async def handle(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            return await self._forwarding.answered(request, handlers[method])

        return Route(path, handle, methods=list(handlers))

    async def _list(self, request: Request) -> Response:
        names = await call(self._ask.names)
        wanted = request.query_params.getlist("expand")
        if not wanted:
            return json_answer(request, names)
        told: dict[str, dict[str, Any]] = {}
        for name in names:
            try:
                told[name] = await call(lambda name=name: self._expanded(name, wanted))  # type: ignore[misc]
            except RequestRefused:
                continue  # It was deleted meanwhile, or has no status yet.
        return json_answer(request, told)

    def _expanded(self, name: str, wanted: list[str]) -> dict[str, Any]:
        told = {}
        if "status" in wanted:
            told["status"] = self._ask.status(name)
        if "info" in wanted:
            told["info"] = self._ask.info(name)
        return told

    async def _create(self, request: Request) -> Response:
        document = await read_document(request)
        refuse_others(document, _OF_A_NEW_ONE)
        config = config_of(document.get("config"))
        name = text_of(document.get("name") or config.get("name") or "").strip()
        initial = document.get("initial_state")
        if initial is not None and str(initial).upper() not in _INITIAL:
            raise RequestRefused(500, f"{initial!r} is none of {', '.join(_INITIAL)}")
        state = None if initial is None else _INITIAL[str(initial).upper()]
        config = _named(name, config)
        info = await call(lambda: self._ask.create(name, config, state))
        return json_answer(request, info, status=201, headers=_location(name))

    async def _info(self, request: Request) -> Response:
        return json_answer(request, await call(lambda: self._ask.info(_name(request))))

    async def _config(self, request: Request) -> Response:
        return json_answer(request, await call(lambda: self._ask.config(_name(request))))

    async def _put_config(self, request: Request) -> Response:
        name = _name(request)
        config = _named(name, config_of(await read_document(request)))
        is_new, info = await call(lambda: self._ask.put_config(name, config))
        headers = _location(name) if is_new else None
        return json_answer(request, info, status=201 if is_new else 200, headers=headers)

    async def _patch_config(self, request: Request) -> Response:
        document = await read_document(request)
        changes = {k: None if v is None else text_of(v) for k, v in document.items()}
        info = await call(lambda: self._ask.patch_config(_name(request), changes))
        return json_answer(request, info)

    async def _delete(self, request: Request) -> Response:
        await call(lambda: self._ask.delete(_name(request)))
        return empty(204)

    async def _status(self, request: Request) -> Response:
        return json_answer(request, await call(lambda: self._ask.status(_name(request))))

    async def _restart(self, request: Request) -> Response:
        include, only = is_set(request, "includeTasks"), is_set(request, "onlyFailed")
        told = await call(
            lambda: self._ask.restart(_name(request), include_tasks=include, only_failed=only)
        )
        return empty(204) if told is None else json_answer(request, told, status=202)

    async def _pause(self, request: Request) -> Response:
        await call(lambda: self._ask.set_target(_name(request), TargetState.PAUSED))
        return empty(202)

    async def _resume(self, request: Request) -> Response:
        await call(lambda: self._ask.set_target(_name(request), TargetState.STARTED))
        return empty(202)

    async def _stop(self, request: Request) -> Response:
        await call(lambda: self._ask.set_target(_name(request), TargetState.STOPPED))
        return empty(204)

    async def _tasks(self, request: Request) -> Response:
        return json_answer(request, await call(lambda: self._ask.tasks(_name(request))))

    async def _put_tasks(self, request: Request) -> Response:
        await self._check_signed(request)
        configs = await read_configs(request)
        await call(lambda: self._ask.put_tasks(_name(request), configs))
        return empty(204)

    async def _fence(self, request: Request) -> Response:
        await self._check_signed(request)
        await call(lambda: self._ask.fence(_name(request)))
        return empty(204)

    async def _check_signed(self, request: Request) -> None:
        """Only workers of the group may ask this."""
        self._ask.check_signature(request.headers, await read_body(request))

    async def _task_status(self, request: Request) -> Response:
        return json_answer(request, await call(lambda: self._ask.task_status(_task(request))))

    async def _restart_task(self, request: Request) -> Response:
        await call(lambda: self._ask.restart_task(_task(request)))
        return empty(204)

    async def _topics(self, request: Request) -> Response:
        return json_answer(request, await call(lambda: self._ask.topics(_name(request))))

    async def _reset_topics(self, request: Request) -> Response:
        await call(lambda: self._ask.reset_topics(_name(request)))
        return empty(202)

    async def _offsets(self, request: Request) -> Response:
        return json_answer(request, await call(lambda: self._ask.offsets(_name(request))))

    async def _alter_offsets(self, request: Request) -> Response:
        document = await read_document(request)
        told = await call(lambda: self._ask.alter_offsets(_name(request), document))
        return json_answer(request, told)

    async def _reset_offsets(self, request: Request) -> Response:
        return json_answer(request, await call(lambda: self._ask.reset_offsets(_name(request))))


def _name(request: Request) -> str:
    return str(request.path_params["connector"])


def _task(request: Request) -> TaskId:
    text = str(request.path_params["task"])
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        raise HttpError("HTTP 404 Not Found", status=404)
    return TaskId(_name(request), int(text))


def _named(name: str, config: dict[str, str]) -> dict[str, str]:
    """The configuration with the connector's name in it, which must not be another one."""
    included = config.get("name")
    if included is not None and included != name:
        raise RequestRefused(
            400,
            f"Connector name configuration ({included}) doesn't match connector name in the URL"
            f" ({name})",
        )
    return {**config, "name": name}


def _location(name: str) -> dict[str, str]:
    return {"location": f"/connectors/{quote(name, safe='')}"}
