"""The network between simulated processes: TCP as it behaves on a bad day.

A message takes a random time. Within a connection nothing is lost, reordered or doubled; between
connections everything may be. A path that is cut swallows messages or keeps them until it heals,
so a question may reach a server long after whoever asked has given up and asked anew elsewhere;
the answer to it then finds no connection and is never taken for another's.

Whatever crosses is encoded and decoded by the real codecs: no two brokers share an object.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.clock import NATURE, Process, VirtualLoop
from tests.simulation.trace import Trace

from penstock.net.peers import PeerUnreachable
from penstock.protocol.apis import (
    ApiKey,
    Request,
    Response,
    request_class,
    response_class,
    supported_versions,
)

_LATE_S_MAX = 8.0  # How long after healing a kept message may still arrive.
_RESET_S = 0.001
_REPEATED = 0.01  # How many of the brokers' fetches come twice.

# (request, version, from whom) → the answer; None where the protocol has none.
Serve = Callable[[Request, int, str], Awaitable[Response | None]]


@dataclass(eq=False)
class Host:
    """A machine's address and the process that listens there; a new process is a new Host."""

    name: str
    process: Process
    serve: Serve
    is_listening: bool = True


@dataclass(eq=False)
class Connection:
    source: Process
    target: Host
    is_open: bool = True
    asked: list["asyncio.Future[memoryview]"] = field(default_factory=list)
    last_arrival_s: float = 0.0
    last_answer_s: float = 0.0

    def break_(self, reason: str) -> None:
        if not self.is_open:
            return
        self.is_open = False
        for waiting in self.asked:
            if not waiting.done():
                waiting.set_exception(PeerUnreachable(reason))
        self.asked.clear()


class Network:
    def __init__(self, loop: VirtualLoop, rng: random.Random, trace: Trace) -> None:
        self._loop = loop
        self._rng = rng
        self._trace = trace
        self._hosts: dict[str, Host] = {}
        self._is_off: set[str] = set()  # Machines without power: nobody is there to refuse.
        self._cut: set[tuple[str, str]] = set()
        self._slow_s: dict[tuple[str, str], float] = {}
        self._connections: dict[tuple[Process, str, str], Connection] = {}
        self._kept: dict[tuple[str, str], list[Callable[[], None]]] = {}
        # Questions between brokers that take up to so long on the way, and their answers as well.
        self.slow_apis_s: dict[ApiKey, float] = {}
        self.message_count = 0
        self.is_rough = True  # Resets and long delays happen by themselves.

    # Who is there

    def listen(self, name: str, process: Process, serve: Serve) -> None:
        self._is_off.discard(name)
        self._hosts[name] = Host(name, process, serve)

    def hang_up(self, name: str, *, is_off: bool = False) -> None:
        """The process is gone; a machine that is still on resets its connections."""
        if is_off:
            self._is_off.add(name)
        host = self._hosts.pop(name, None)
        if host is None:
            return
        host.is_listening = False
        for (source, _, _), connection in tuple(self._connections.items()):
            if connection.target is host and not is_off and not self._is_cut(name, source.name):
                self._after(source, _RESET_S, connection.break_, f"{name} reset the connection")

    # Faults

    def cut(self, source: str, target: str) -> None:
        self._cut.add((source, target))

    def heal(self, source: str, target: str) -> None:
        self._cut.discard((source, target))
        for arrive in self._kept.pop((source, target), ()):
            self._loop.call_later(self._rng.random() * _LATE_S_MAX, arrive, context=NATURE)

    def heal_all(self) -> None:
        for source, target in sorted(self._cut):
            self.heal(source, target)
        self._slow_s.clear()

    def slow(self, source: str, target: str, delay_s: float) -> None:
        self._slow_s[source, target] = delay_s

    def reset(self, source: str, target: str) -> None:
        """Connections between these two break; new ones can be made at once."""
        for (process, name, _), connection in tuple(self._connections.items()):
            if process.name == source and name == target:
                connection.break_("connection reset")

    def _is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    # Asking

    async def ask(
        self,
        source: Process,
        target: str,
        request: Request,
        *,
        timeout_s: float,
        channel: str,
        version: int | None = None,
    ) -> Response:
        api_key = ApiKey(request.api_key)
        version = supported_versions(api_key)[-1] if version is None else version
        frame = request.encode(version)
        connection: Connection | None = None
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self._connected(source, target, channel)
                answer = self._send(connection, api_key, version, frame)
                body = await answer
        except TimeoutError:
            self._drop(source, target, channel, connection)
            raise PeerUnreachable(
                f"{target} did not answer in {timeout_s} s", was_sent=connection is not None
            ) from None
        except BaseException:
            # Whoever stops waiting must not leave an answer behind for the next one.
            self._drop(source, target, channel, connection)
            raise
        response: Response = response_class(api_key).decode(body, version)
        return response

    def forget(self, source: Process, target: str) -> None:
        for process, name, channel in tuple(self._connections):
            if process is source and name == target:
                self._drop(process, name, channel, None)

    def _drop(
        self, source: Process, target: str, channel: str, connection: Connection | None
    ) -> None:
        known = self._connections.get((source, target, channel))
        if known is not None and connection in (None, known):
            del self._connections[source, target, channel]
            known.break_("connection closed")

    async def _connected(self, source: Process, target: str, channel: str) -> Connection:
        known = self._connections.get((source, target, channel))
        if known is not None and known.is_open:
            return known
        await asyncio.sleep(self._delay_s(source.name, target))
        if self._is_cut(source.name, target) or self._is_cut(target, source.name):
            await asyncio.sleep(3600)  # Nobody answers; the caller's timeout ends this.
        host = self._hosts.get(target)
        if host is None and target in self._is_off:
            await asyncio.sleep(3600)
        await asyncio.sleep(self._delay_s(target, source.name))
        if host is None or not host.is_listening:
            raise PeerUnreachable(f"{target} refused", is_refused=True, was_sent=False)
        known = self._connections.get((source, target, channel))
        if known is not None and known.is_open:
            return known  # Somebody else was quicker on the same channel.
        connection = self._connections[source, target, channel] = Connection(source, host)
        return connection

    def _send(
        self, connection: Connection, api_key: ApiKey, version: int, frame: bytes
    ) -> "asyncio.Future[memoryview]":
        self.message_count += 1
        answer: asyncio.Future[memoryview] = self._loop.create_future()
        connection.asked.append(answer)
        source, host = connection.source, connection.target
        path = (source.name, host.name)

        def arrive() -> None:
            if host.is_listening:
                host.process.start(self._served(connection, answer, api_key, version, frame))
            elif host.name not in self._is_off and not self._is_cut(host.name, source.name):
                # The machine is on, and knows nothing of a connection to a process before.
                self._after(source, _RESET_S, connection.break_, f"{host.name} reset it")

        if self.is_rough and self._rng.random() < 0.002:
            # Sent on a connection that is breaking: it may still arrive, the answer will not.
            self._after(source, self._rng.random() * 0.2, connection.break_, "connection reset")
        if self._is_cut(*path):
            self._keep(path, arrive)
            return answer
        is_between_brokers = source.name in self._hosts and api_key is ApiKey.FETCH
        if is_between_brokers and self.is_rough and self._rng.random() < _REPEATED:
            self._repeat(connection, api_key, version, frame)
        delay_s = self._delay_s(*path) + self._api_delay_s(source, api_key)
        at_s = max(connection.last_arrival_s, self._loop.time() + delay_s)
        connection.last_arrival_s = at_s
        self._loop.call_at(at_s, self._unless_cut, path, arrive, context=NATURE)
        return answer

    def _repeat(self, connection: Connection, api_key: ApiKey, version: int, frame: bytes) -> None:
        """It comes once more, when others may have come after it; nobody waits for its answer."""
        host = connection.target

        def arrive() -> None:
            if host.is_listening:
                unheard: asyncio.Future[memoryview] = self._loop.create_future()
                unheard.cancel()
                self._trace.note("repeat", connection.source.name, host.name)
                host.process.start(self._served(connection, unheard, api_key, version, frame))

        late_s = self._rng.choice((0.01, 0.3, _LATE_S_MAX)) * self._rng.random()
        self._loop.call_later(late_s, arrive, context=NATURE)

    def _unless_cut(self, path: tuple[str, str], arrive: Callable[[], None]) -> None:
        if self._is_cut(*path):
            self._keep(path, arrive)
        else:
            arrive()

    def _keep(self, path: tuple[str, str], arrive: Callable[[], None]) -> None:
        if self._rng.random() < 0.5:
            self._kept.setdefault(path, []).append(arrive)

    async def _served(
        self,
        connection: Connection,
        answer: "asyncio.Future[memoryview]",
        api_key: ApiKey,
        version: int,
        frame: bytes,
    ) -> None:
        """Runs as a task of the server's process."""
        source, host = connection.source, connection.target
        request: Any = request_class(api_key).decode(memoryview(bytearray(frame)), version)
        self._trace.note("ask", source.name, host.name, api_key.name, len(frame))
        response = await host.serve(request, version, source.name)
        if response is None:
            return
        body = memoryview(bytearray().join(map(_bytes_of, response.encode_parts(version))))
        path = (host.name, source.name)

        def arrive() -> None:
            if connection.is_open and not answer.done():
                connection.asked.remove(answer)
                self._trace.note("answer", host.name, source.name, api_key.name, len(body))
                # As the asking process: not while it is paused, never once it is dead.
                source.call(_settle, answer, body)

        if self._is_cut(*path):
            self._keep(path, arrive)
            return
        delay_s = self._delay_s(*path) + self._api_delay_s(source, api_key)
        at_s = max(connection.last_answer_s, self._loop.time() + delay_s)
        connection.last_answer_s = at_s
        self._loop.call_at(at_s, self._unless_cut, path, arrive, context=NATURE)

    def _delay_s(self, source: str, target: str) -> float:
        delay_s = 0.0002 + self._rng.expovariate(2000) + self._slow_s.get((source, target), 0.0)
        if self.is_rough and self._rng.random() < 0.005:
            delay_s += self._rng.random() * 0.5  # A lost segment, sent again later.
        return delay_s

    def _api_delay_s(self, source: Process, api_key: ApiKey) -> float:
        longest_s = self.slow_apis_s.get(api_key)
        if longest_s is None or not self.is_rough or source.name not in self._hosts:
            return 0.0
        return self._rng.random() * longest_s

    def _after(
        self, process: Process, delay_s: float, work: Callable[[str], None], reason: str
    ) -> None:
        self._loop.call_later(delay_s, process.call, work, reason, context=NATURE)


def _settle(answer: "asyncio.Future[memoryview]", body: memoryview) -> None:
    if not answer.done():
        answer.set_result(body)


def _bytes_of(part: Any) -> bytes:
    return part if isinstance(part, (bytes, bytearray, memoryview)) else part.read()


class SimPeers:
    """The `Peers` of one broker process."""

    def __init__(self, network: Network, process: Process) -> None:
        self._network = network
        self._process = process

    async def ask(
        self,
        broker_id: int,
        request: Request,
        *,
        timeout_s: float,
        channel: str = "control",
        version: int | None = None,
    ) -> Response:
        return await self._network.ask(
            self._process,
            host_name(broker_id),
            request,
            timeout_s=timeout_s,
            channel=channel,
            version=version,
        )

    def forget(self, broker_id: int) -> None:
        self._network.forget(self._process, host_name(broker_id))


def host_name(broker_id: int) -> str:
    return f"broker-{broker_id}"
