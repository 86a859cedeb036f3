"""The metrics endpoint on a real socket: Kafka's names, and nothing but GET /metrics."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.errors import ConfigError
from penstock.telemetry import families, prometheus
from penstock.telemetry.metrics import Gauge, Metrics
from penstock.telemetry.prometheus import MetricsEndpoint, collect, render

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def counted() -> Metrics:
    metrics = Metrics()
    orders = metrics.topic("orders")
    orders.messages_in += 10
    orders.bytes_in += 1000
    orders.failed_produce_requests += 1
    metrics.topic("clicks").bytes_in += 24
    produce = metrics.request("Produce")
    for _ in range(100):
        produce.observe(0.002)
    produce.fail("MESSAGE_TOO_LARGE")
    metrics.listener("PLAINTEXT").opened += 3
    metrics.listener("PLAINTEXT").closed += 1
    metrics.watch(
        lambda: [
            Gauge(families.PARTITION_COUNT, {}, 2),
            Gauge(families.LOG_END_OFFSET, {"topic": "orders", "partition": "0"}, 10),
            Gauge(families.LOG_END_OFFSET, {"topic": "orders", "partition": "1"}, 0),
        ]
    )
    return metrics


def samples(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(metrics: Metrics) -> Samples:
    body, _ = render(list(collect(metrics, metrics.gauges())), "")
    return samples(body.decode())


async def exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


def against_endpoint(
    talk: Callable[[int], Awaitable[bytes]], metrics: Metrics | None = None
) -> tuple[bytes, bytes]:
    """Head and body of the answer to what `talk` says to a running endpoint."""

    async def run() -> bytes:
        async with MetricsEndpoint([("127.0.0.1", 0)], metrics or counted()) as endpoint:
            return await talk(endpoint.ports[0])

    head, _, body = asyncio.run(run()).partition(b"\r\n\r\n")
    return head, body


def answered(request: bytes) -> tuple[bytes, bytes]:
    return against_endpoint(lambda port: exchange(port, request))


def test_topics_are_counted_singly_and_together() -> None:
    found = scraped(counted())
    name = "kafka_server_brokertopicmetrics_bytesin_total"
    assert found[name, ()] == 1024
    assert found[name, (("topic", "orders"),)] == 1000
    assert found[name, (("topic", "clicks"),)] == 24
    assert found["kafka_server_brokertopicmetrics_messagesin_total", ()] == 10
    assert found["kafka_server_brokertopicmetrics_failedproducerequests_total", ()] == 1


def test_requests_have_counts_errors_and_percentiles_in_milliseconds() -> None:
    found = scraped(counted())
    produce = ("request", "Produce")
    assert found["kafka_network_requestmetrics_requests_total", (produce,)] == 100
    errors = "kafka_network_requestmetrics_errors_total"
    assert found[errors, (("error", "MESSAGE_TOO_LARGE"), produce)] == 1
    times = "kafka_network_requestmetrics_totaltimems"
    for quantile in ("0.5", "0.95", "0.99", "0.999"):
        assert found[times, (("quantile", quantile), produce)] == pytest.approx(2, rel=1 / 16)
    assert found[f"{times}_count", (produce,)] == 100
    assert found[f"{times}_sum", (produce,)] == pytest.approx(200)


def test_connections_and_gauges_are_told_with_their_labels() -> None:
    found = scraped(counted())
    listener = (("listener", "PLAINTEXT"),)
    assert found["kafka_server_socketservermetrics_connection_count", listener] == 2
    assert found["kafka_server_socketservermetrics_connection_creation_total", listener] == 3
    assert found["kafka_server_replicamanager_partitioncount", ()] == 2
    labels = (("partition", "0"), ("topic", "orders"))
    assert found["kafka_log_log_logendoffset", labels] == 10
    assert found["process_resident_memory_bytes", ()] > 1_000_000


def test_a_broker_that_has_done_nothing_can_be_scraped() -> None:
    assert scraped(Metrics())["kafka_server_brokertopicmetrics_bytesin_total", ()] == 0


def test_a_topic_named_to_break_the_format_does_not_break_it() -> None:
    metrics = Metrics()
    metrics.topic('a"\\\nb').bytes_in += 1
    found = scraped(metrics)
    assert found["kafka_server_brokertopicmetrics_bytesin_total", (("topic", 'a"\\\nb'),)] == 1


def test_a_scrape_over_a_socket_gets_text_of_the_stated_type_and_length() -> None:
    head, body = answered(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "HTTP/1.1 200 OK"
    assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in lines
    assert f"Content-Length: {len(body)}" in lines
    assert samples(body.decode())["kafka_server_brokertopicmetrics_bytesin_total", ()] == 1024


def test_a_scraper_that_likes_openmetrics_gets_it() -> None:
    head, body = answered(
        b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n"
    )
    assert b"Content-Type: application/openmetrics-text; version=1.0.0" in head
    assert body.endswith(b"# EOF\n")


def test_a_broken_accept_header_gets_the_usual_text() -> None:
    request = b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=x.y\r\n\r\n"
    assert b"text/plain; version=0.0.4" in answered(request)[0]


def test_head_gets_the_head_alone() -> None:
    head, body = answered(b"HEAD /metrics?x=1 HTTP/1.0\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert b"Content-Length: 0" not in head
    assert body == b""


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"404 Not Found"),
        (b"GET /metricsx HTTP/1.1\r\n\r\n", b"404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405 Method Not Allowed"),
        (b"hello\r\n\r\n", b"400 Bad Request"),
        (b"GET /metrics SPDY/9\r\n\r\n", b"400 Bad Request"),
        (b"\x00\x00\x00\x12\x00\x12\x00\x03\r\n\r\n", b"400 Bad Request"),
        (
            b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
            b"431 Request Header Fields Too Large",
        ),
    ],
)
def test_anything_else_is_refused(request_: bytes, status: bytes) -> None:
    head, _ = answered(request_)
    assert head.startswith(b"HTTP/1.1 " + status + b"\r\n")


def test_a_request_that_stops_half_way_is_answered() -> None:
    async def talk(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /met")
        writer.write_eof()
        return await reader.read()

    assert against_endpoint(talk)[0].startswith(b"HTTP/1.1 400")


def test_a_scraper_that_sleeps_is_cut_off_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheus, "REQUEST_S_MAX", 0.1)

    async def talk(port: int) -> bytes:
        reader, _ = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        monkeypatch.setattr(prometheus, "REQUEST_S_MAX", 5.0)
        return await exchange(port, b"GET /metrics HTTP/1.1\r\n\r\n")

    assert against_endpoint(talk)[0].startswith(b"HTTP/1.1 200")


def test_too_many_scrapers_at_once_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "CONNECTIONS_MAX", 1)

    async def talk(port: int) -> bytes:
        first_reader, first = await asyncio.open_connection("127.0.0.1", port)
        second_reader, _ = await asyncio.open_connection("127.0.0.1", port)
        assert await second_reader.read() == b""
        first.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        return await first_reader.read()

    assert against_endpoint(talk)[0].startswith(b"HTTP/1.1 200")


def test_stopping_does_not_wait_for_a_scraper_that_sleeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheus, "REQUEST_S_MAX", 3600.0)

    async def run() -> None:
        async with asyncio.timeout(120):
            async with MetricsEndpoint([("127.0.0.1", 0)], counted()) as endpoint:
                reader, _ = await asyncio.open_connection("127.0.0.1", endpoint.ports[0])
                await exchange(endpoint.ports[0], b"GET / HTTP/1.1\r\n\r\n")
            assert await reader.read() == b""

    asyncio.run(run())


def test_a_port_that_is_taken_is_a_sentence_and_nothing_stays_open() -> None:
    async def run() -> None:
        async with MetricsEndpoint([("127.0.0.1", 0)], counted()) as first:
            taken = first.ports[0]
            second = MetricsEndpoint([("127.0.0.1", 0), ("127.0.0.1", taken)], counted())
            with pytest.raises(ConfigError, match=rf"cannot listen on 127.0.0.1:{taken}"):
                await second.__aenter__()
            assert second._servers == []

    asyncio.run(run())


def test_the_library_is_not_imported_before_the_first_scrape() -> None:
    code = (
        "import sys, penstock.telemetry.prometheus as p, penstock.telemetry.metrics as m;"
        "m.Metrics().topic('a'); print('prometheus_client' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
