"""Interceptors: in order, closed at the end, and never able to cost a record."""

import logging
from typing import Any

import pytest

from penstock.client.interceptors import Chain, ConsumerInterceptor, ProducerInterceptor
from penstock.client.values import ProducerRecord
from penstock.errors import ConfigError


class Suffix(ProducerInterceptor):
    def __init__(self, text: str) -> None:
        self.text = text
        self.told: list[Any] = []

    def configure(self, settings: Any) -> None:
        self.told.append(settings["k"])

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        return ProducerRecord(topic=record.topic, value=f"{record.value}{self.text}")

    def on_acknowledgement(self, metadata: Any, exception: Any) -> None:
        self.told.append((metadata, exception))

    def close(self) -> None:
        self.told.append("closed")


class Broken(ProducerInterceptor):
    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        raise RuntimeError("broken")


def test_each_gets_what_the_one_before_returned() -> None:
    chain = Chain([Suffix("a"), Suffix("b")], ProducerInterceptor, {"k": 1})
    assert chain.pass_through("on_send", ProducerRecord(topic="t", value="x")).value == "xab"


def test_a_broken_one_is_logged_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    chain = Chain([Broken(), Suffix("a")], ProducerInterceptor, {"k": 1})
    with caplog.at_level(logging.WARNING, "penstock.client"):
        found = chain.pass_through("on_send", ProducerRecord(topic="t", value="x"))
    assert found.value == "xa"
    assert "failed in on_send" in caplog.text


def test_all_are_configured_told_and_closed() -> None:
    one = Suffix("a")
    chain = Chain([one], ProducerInterceptor, {"k": 1})
    chain.tell("on_acknowledgement", None, "why")
    chain.close()
    assert one.told == [1, (None, "why"), "closed"]


def test_an_empty_chain_is_false() -> None:
    assert not Chain((), ConsumerInterceptor, {})


def test_a_stranger_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a ConsumerInterceptor"):
        Chain([Suffix("a")], ConsumerInterceptor, {"k": 1})
