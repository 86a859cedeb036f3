"""Metrics for Prometheus: an HTTP endpoint that answers GET /metrics, and nothing else.

Gauges are read on the event loop, where they change, a few hundred at a time; counters are read
and all of it is turned into text in a thread, so that a scrape of ten thousand partitions does not
hold up a fetch. prometheus_client knows the formats; it
is imported at the first scrape, because most brokers run without this endpoint.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from penstock.errors import ConfigError
from penstock.telemetry import families
from penstock.telemetry.histogram import Histogram
from penstock.telemetry.metrics import Gauge, Metrics

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

REQUEST_BYTES_MAX: Final = 8192
REQUEST_S_MAX: Final = 5.0
CONNECTIONS_MAX: Final = 16
GAUGES_AT_ONCE: Final = 500

_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
}


class MetricsEndpoint:
    """Listens on some addresses for as long as it is entered.

    An empty host means every interface, port 0 any free port; `ports` are the real ones.
    """

    def __init__(
        self,
        addresses: Sequence[tuple[str, int]],
        metrics: Metrics,
        *,
        gauges_alone: bool = False,  # For a service that counts none of what a broker does.
    ) -> None:
        self._addresses = addresses
        self._metrics = metrics
        self._collect = _only_gauges if gauges_alone else collect
        self._servers: list[asyncio.Server] = []
        self._serving: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self.ports: tuple[int, ...] = ()

    async def __aenter__(self) -> Self:
        try:
            for host, port in self._addresses:
                self._servers.append(await self._listen(host, port))
        except ConfigError:
            await self._close()
            raise
        self.ports = tuple(server.sockets[0].getsockname()[1] for server in self._servers)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close()

    async def _listen(self, host: str, port: int) -> asyncio.Server:
        try:
            return await asyncio.start_server(
                self._serve, host or None, port, limit=REQUEST_BYTES_MAX
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigError(
                f"metrics.listeners: cannot listen on {host}:{port}: {reason}"
            ) from error

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for writer in self._serving:
            writer.transport.abort()  # Ends the wait for a scraper that sleeps.
        if self._serving:
            await asyncio.wait(self._serving.values())
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._serving) >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        self._serving[writer] = task
        try:
            # Counting takes as long as it takes; only the scraper must not sleep.
            writer.write(await self._answer(reader))
            async with asyncio.timeout(REQUEST_S_MAX):
                await writer.drain()
        except (OSError, TimeoutError):
            pass  # A scraper that went away or sleeps; the next one comes by itself.
        finally:
            del self._serving[writer]
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(REQUEST_S_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _plain(431)
        except asyncio.IncompleteReadError:
            return _plain(400)
        request = parse_head(head)
        if request is None:
            return _plain(400)
        method, path, accept = request
        if path.partition("?")[0] != "/metrics":
            return _plain(404)
        if method not in ("GET", "HEAD"):
            return _plain(405, "Allow: GET, HEAD\r\n")
        return await self._scrape(accept, with_body=method == "GET")

    async def _scrape(self, accept: str, *, with_body: bool) -> bytes:
        await asyncio.to_thread(_import_client)
        self._metrics.roll(time.monotonic())
        gauges = await self._gauges()
        body, content_type = await asyncio.to_thread(
            lambda: render(list(self._collect(self._metrics, gauges)), accept)
        )
        return _response(200, content_type, body, with_body=with_body)

    async def _gauges(self) -> list[Gauge]:
        gauges: list[Gauge] = []
        for gauge in self._metrics.gauges():
            gauges.append(gauge)
            if len(gauges) % GAUGES_AT_ONCE == 0:
                await asyncio.sleep(0)
        return gauges


def parse_head(head: bytes) -> tuple[str, str, str] | None:
    """Method, path and Accept header of a request, or None if it is not one."""
    first, *headers = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        return None
    accept = ""
    for line in headers:
        name, _, value = line.partition(":")
        if name.strip().lower() == "accept":
            accept = value.strip()
    return parts[0], parts[1], accept


def render(collected: Sequence["Metric"], accept: str) -> tuple[bytes, str]:
    """The text of metrics in the format the scraper likes best, and its content type."""
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.process_collector import ProcessCollector

    try:
        encoder, content_type = choose_encoder(accept)
    except (ValueError, TypeError):  # A version in the header that is none.
        encoder, content_type = choose_encoder("")
    everything = [*collected, *ProcessCollector(registry=None).collect()]
    return encoder(_Collected(everything)), content_type


def collect(metrics: Metrics, gauges: Iterable[Gauge]) -> Iterable["Metric"]:
    """Every family with its samples, as of now; may be called in any thread."""
    yield from _topic_families(metrics)
    yield from _request_families(metrics)
    yield from _listener_families(metrics)
    yield from _gauge_families(gauges)


def _topic_families(metrics: Metrics) -> Iterable["Metric"]:
    from prometheus_client.core import Metric

    total = metrics.all_topics()
    for name, attribute, text in families.TOPIC_COUNTERS:
        family = Metric(name, text, "counter")
        # Kafka's bean for all topics has no topic; sums over the label would count twice.
        family.add_sample(f"{name}_total", {}, getattr(total, attribute))
        for topic, counts in tuple(metrics.topics.items()):
            family.add_sample(f"{name}_total", {"topic": topic}, getattr(counts, attribute))
        yield family


def _request_families(metrics: Metrics) -> Iterable["Metric"]:
    from prometheus_client.core import Metric

    sizes = (
        (families.REQUESTS, "count", "Requests answered."),
        (families.REQUEST_BYTES, "request_bytes", "Bytes of requests."),
        (families.RESPONSE_BYTES, "response_bytes", "Bytes of answers."),
    )
    for name, attribute, text in sizes:
        family = Metric(name, text, "counter")
        for api, counts in tuple(metrics.requests.items()):
            family.add_sample(f"{name}_total", {"request": api}, getattr(counts, attribute))
        yield family
    errors = Metric(families.ERRORS, "Error codes answered.", "counter")
    for api, counts in tuple(metrics.requests.items()):
        for code, count in tuple(counts.errors.items()):
            labels = {"request": api, "error": code}
            errors.add_sample(f"{families.ERRORS}_total", labels, count)
    yield errors
    yield from _time_families(metrics)


def _time_families(metrics: Metrics) -> Iterable["Metric"]:
    yield _summary(
        families.TOTAL_TIME,
        "Milliseconds a request took in all.",
        ((api, counts.total_time) for api, counts in tuple(metrics.requests.items())),
    )
    yield _summary(
        families.LOCAL_TIME,
        "Milliseconds of work on a request.",
        ((api, counts.local_time) for api, counts in tuple(metrics.requests.items())),
    )


def _summary(name: str, text: str, times: Iterable[tuple[str, Histogram]]) -> "Metric":
    from prometheus_client.core import Metric

    family = Metric(name, text, "summary")
    for api, histogram in times:
        if not histogram.count:
            continue
        values = histogram.percentiles(*families.QUANTILES)
        for quantile, seconds in zip(families.QUANTILES, values, strict=True):
            family.add_sample(name, {"request": api, "quantile": str(quantile)}, seconds * 1000)
        family.add_sample(f"{name}_count", {"request": api}, histogram.count)
        family.add_sample(f"{name}_sum", {"request": api}, histogram.sum_s * 1000)
    return family


def _listener_families(metrics: Metrics) -> Iterable["Metric"]:
    from prometheus_client.core import Metric

    for kind, name, attribute, text in families.LISTENER_FAMILIES:
        family = Metric(name, text, kind)
        suffix = "_total" if kind == "counter" else ""
        for listener, counts in tuple(metrics.listeners.items()):
            family.add_sample(f"{name}{suffix}", {"listener": listener}, getattr(counts, attribute))
        yield family


def _only_gauges(_: Metrics, gauges: Iterable[Gauge]) -> Iterable["Metric"]:
    return _gauge_families(gauges)


def _gauge_families(gauges: Iterable[Gauge]) -> Iterable["Metric"]:
    from prometheus_client.core import Metric

    found: dict[str, Metric] = {}
    for name, labels, value in gauges:
        if name not in found:
            found[name] = Metric(name, families.GAUGE_TEXTS.get(name, ""), "gauge")
        found[name].add_sample(name, dict(labels), value)
    yield from found.values()


class _Collected:
    """What prometheus_client's encoders take: something to collect from."""

    def __init__(self, metrics: Sequence["Metric"]) -> None:
        self.collect: Callable[[], Sequence[Metric]] = lambda: metrics


def _import_client() -> None:
    import prometheus_client  # noqa: F401


def _plain(status: int, headers: str = "") -> bytes:
    return _response(status, "text/plain; charset=utf-8", f"{_REASONS[status]}\n".encode(), headers)


def _response(
    status: int, content_type: str, body: bytes, headers: str = "", *, with_body: bool = True
) -> bytes:
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\n"
        f"Content-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"{headers}Connection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
