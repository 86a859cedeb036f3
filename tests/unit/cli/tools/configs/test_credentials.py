"""kafka-configs and SCRAM: what is read of a command line, and what is printed."""

import pytest

from penstock.cli.tools.configs.credentials import credential_line, is_credential, parse_credential
from penstock.errors import CommandError


@pytest.mark.parametrize(
    ("text", "password", "iterations"),
    [
        ("iterations=8192,password=a,b=c", "a,b=c", 8192),
        ("password=x", "x", 4096),
        ("iterations=,password=x", "x", 4096),
    ],
)
def test_a_credential_is_read_as_kafka_reads_it(text: str, password: str, iterations: int) -> None:
    read = parse_credential("SCRAM-SHA-256", text)
    assert (read.password, read.iterations) == (password, iterations)
    assert password not in repr(read)


@pytest.mark.parametrize("text", ["", "x", "password=", "iterations=1", "iterations=x,password=y"])
def test_a_credential_without_a_password_is_told_without_what_was_written(text: str) -> None:
    with pytest.raises(CommandError, match="no password is found"):
        parse_credential("SCRAM-SHA-256", text)


def test_too_few_rounds_are_refused_before_a_broker_is_asked() -> None:
    words = "Iterations 100 is less than the minimum 4096 required for SCRAM-SHA-512"
    with pytest.raises(CommandError, match=words):
        parse_credential("SCRAM-SHA-512", "iterations=100,password=x")


def test_credentials_are_told_from_quotas() -> None:
    assert is_credential("SCRAM-SHA-512") and not is_credential("producer_byte_rate")


def test_a_line_is_as_kafka_prints_it() -> None:
    assert credential_line("al", {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 4096}) == (
        "SCRAM credential configs for user-principal 'al' are "
        "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096"
    )
