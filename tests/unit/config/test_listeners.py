"""Listeners: how they are written, what is refused, what clients are told."""

import pytest

from penstock.config.listeners import (
    ListenerAddress,
    advertised_ports,
    check_bindable,
    parse_http_listeners,
    parse_listeners,
    parse_protocol_map,
)
from penstock.errors import ConfigError

MAP = {"PLAINTEXT": "PLAINTEXT", "INTERNAL": "PLAINTEXT", "SSL": "SSL"}


@pytest.mark.parametrize(
    ("text", "name", "host", "port"),
    [
        ("PLAINTEXT://:9092", "PLAINTEXT", "", 9092),
        ("plaintext://localhost:0", "PLAINTEXT", "localhost", 0),
        ("INTERNAL://0.0.0.0:9092", "INTERNAL", "0.0.0.0", 9092),
        ("PLAINTEXT://[::1]:9092", "PLAINTEXT", "::1", 9092),
        ("PLAINTEXT://[fe80::1%eth0]:9092", "PLAINTEXT", "fe80::1%eth0", 9092),
        (" PLAINTEXT://a-b.example:65535 ", "PLAINTEXT", "a-b.example", 65535),
    ],
)
def test_a_listener_is_a_name_a_host_and_a_port(text: str, name: str, host: str, port: int) -> None:
    assert parse_listeners("listeners", [text], MAP) == (
        ListenerAddress(name, host, port, "PLAINTEXT"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost:9092",
        "PLAINTEXT://localhost",
        "PLAINTEXT://localhost:",
        "PLAINTEXT://localhost:x",
        "PLAINTEXT://localhost:65536",
        "PLAINTEXT://localhost:-1",
        "://localhost:9092",
        "PLAINTEXT:/localhost:9092",
        "PLAINTEXT://a b:9092",
    ],
)
def test_a_listener_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"listeners has .*: write NAME://host:port"):
        parse_listeners("listeners", [text], MAP)


def test_a_name_without_a_protocol_is_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"add DOCKER:PLAINTEXT to it"):
        parse_listeners("listeners", ["DOCKER://:9092"], MAP)


def test_two_listeners_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"two listeners named PLAINTEXT"):
        parse_listeners("listeners", ["PLAINTEXT://:1", "plaintext://:2"], MAP)


def test_two_listeners_on_one_port_are_refused_unless_of_two_families() -> None:
    def of(*texts: str) -> tuple[ListenerAddress, ...]:
        return parse_listeners("listeners", texts, MAP)

    check_bindable(of("PLAINTEXT://:0", "INTERNAL://:0"))
    check_bindable(of("PLAINTEXT://127.0.0.1:9092", "INTERNAL://[::1]:9092"))
    for second in ("INTERNAL://127.0.0.2:9092", "INTERNAL://:9092"):
        with pytest.raises(ConfigError, match=r"each needs its own port"):
            check_bindable(of("PLAINTEXT://127.0.0.1:9092", second))


def test_the_protocol_map_names_protocols() -> None:
    assert parse_protocol_map(" a:PLAINTEXT , b:sasl_ssl ") == {"A": "PLAINTEXT", "B": "SASL_SSL"}
    for text in ("a", "a:TLS", ":SSL"):
        with pytest.raises(ConfigError, match=r"write NAME:PROTOCOL"):
            parse_protocol_map(text)
    with pytest.raises(ConfigError, match=r"names A twice"):
        parse_protocol_map("a:SSL,A:SSL")


def test_port_0_is_advertised_as_the_port_it_became() -> None:
    told = parse_listeners("x", ["PLAINTEXT://a:0", "INTERNAL://b:7"], MAP)
    real = advertised_ports(told, {"PLAINTEXT": 40001, "INTERNAL": 40002})
    assert [str(listener) for listener in real] == ["PLAINTEXT://a:40001", "INTERNAL://b:7"]


def test_a_listener_prints_as_it_is_written() -> None:
    assert str(ListenerAddress("A", "::1", 9, "PLAINTEXT")) == "A://[::1]:9"
    assert str(ListenerAddress("A", "", 9, "PLAINTEXT")) == "A://:9"


def test_metrics_are_served_over_plain_http_only() -> None:
    (listener,) = parse_http_listeners("metrics.listeners", ["http://127.0.0.1:9404/"])
    assert (listener.host, listener.port) == ("127.0.0.1", 9404)
    with pytest.raises(ConfigError, match=r"only http:// is served"):
        parse_http_listeners("metrics.listeners", ["https://127.0.0.1:9404"])
