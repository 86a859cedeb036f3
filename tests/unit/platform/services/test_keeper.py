"""A service that fails is opened again, and its port says so meanwhile."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from penstock.errors import ConfigError
from penstock.http.bodies import json_answer
from penstock.http.handlers import Request, Response, Route
from penstock.http.service import OpenService, Served, service
from penstock.platform.services.keeper import ServiceKeeper
from penstock.platform.services.switch import ServiceSwitch
from penstock.platform.services.table import Runner


@dataclass(frozen=True)
class Config:
    listeners: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()


async def _hello(request: Request) -> Response:
    return json_answer(request, {"hello": True})


@dataclass
class Lives:
    """A service whose openings and ends the test decides."""

    refusals: list[Exception] = field(default_factory=list)  # Of the next openings.
    failing: "asyncio.Future[None] | None" = None
    opened: int = 0
    closed: int = 0
    streams_ended: int = 0
    pauses: list[float] = field(default_factory=list)
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.switch = ServiceSwitch("rest", "REST proxy")
        self.keeper = ServiceKeeper(
            self.switch, Runner(open=self.open), Config(), pause=self._pause
        )

    @asynccontextmanager
    async def open(self, config: Any) -> AsyncIterator[OpenService]:
        if self.refusals:
            raise self.refusals.pop(0)
        self.failing = asyncio.get_running_loop().create_future()
        self.opened += 1
        app = service([Route("/hello", _hello)], Served(offered=["application/json"]))
        try:
            yield OpenService(app=app, failing=self.failing, end_streams=self._end_streams)
        finally:
            self.closed += 1

    async def ask(self, path: str, method: str = "GET") -> httpx.Response:
        transport = httpx.ASGITransport(self.switch)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.request(method, path)

    async def _pause(self, pause_s: float) -> None:
        self.pauses.append(pause_s)
        await self.goes_on.wait()

    def _end_streams(self) -> None:
        self.streams_ended += 1


@asynccontextmanager
async def kept(lives: Lives) -> AsyncIterator[Lives]:
    keeping = asyncio.create_task(lives.keeper.keep())
    try:
        yield lives
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})
    assert lives.opened == lives.closed


async def turns() -> None:
    """Let everybody do what is to be done now."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_an_open_service_answers_for_itself() -> None:
    async def story() -> None:
        async with kept(Lives()) as lives:
            assert (await lives.ask("/-/ready")).status_code == 503
            await turns()
            assert (await lives.ask("/hello")).json() == {"hello": True}
            assert (await lives.ask("/-/ready")).status_code == 200

    asyncio.run(story())


def test_a_failure_is_told_on_the_port_until_it_is_open_again() -> None:
    async def story() -> None:
        async with kept(Lives()) as lives:
            await turns()
            assert lives.failing is not None
            lives.failing.set_exception(ConfigError("the topic is gone"))
            await turns()
            health = await lives.ask("/-/health")
            assert (health.status_code, health.json()["problems"]) == (
                503,
                {"rest": "the topic is gone"},
            )
            refused = await lives.ask("/subjects/a%2Fb/versions", "POST")
            assert refused.status_code == 503
            assert "the topic is gone" in refused.json()["message"]
            assert refused.headers["retry-after"] == "1"
            lives.goes_on.set()
            await turns()
            assert (await lives.ask("/-/health")).status_code == 200
            assert (lives.opened, lives.pauses) == (2, [0.5])

    asyncio.run(story())


def test_one_that_cannot_be_opened_is_tried_ever_later() -> None:
    async def story() -> None:
        lives = Lives(refusals=[ConfigError(f"no {number}") for number in range(4)])
        lives.goes_on.set()
        async with kept(lives):
            await turns()
            assert lives.pauses == [0.5, 1, 2, 4]
            assert (await lives.ask("/hello")).status_code == 200

    asyncio.run(story())


def test_a_defect_is_logged_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with kept(Lives(refusals=[ZeroDivisionError()])) as lives:
            await turns()
            assert lives.switch.problem == "ZeroDivisionError"

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert caplog.records[0].exc_info


def test_streams_are_ended_while_it_is_open_and_only_then() -> None:
    async def story() -> None:
        async with kept(Lives()) as lives:
            lives.keeper.end_streams()
            await turns()
            lives.keeper.end_streams()
            assert lives.streams_ended == 1

    asyncio.run(story())
