"""A hundred thousand frames before a login, a million with PENSTOCK_LONG=1: nobody comes in.

Connections, gate and mechanisms are the broker's own, on socket pairs, which are as real to them
as a network and many times as fast to open.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import pytest
from tests.support.hostile_logins import (
    MECHANISMS,
    PASSWORD,
    USER,
    Conversation,
    HostileLogins,
    credential,
)

from penstock.broker.dispatch import api_versions_response, served_versions
from penstock.broker.security.sasl_gate import SaslGate
from penstock.broker.security.sasl_mechanisms import KnownUsers, SaslMechanisms
from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.net.buffers import BufferPool
from penstock.net.connection import ConnectionLimits, IncomingConnection
from penstock.net.readers import Readers
from penstock.net.session import Session
from penstock.net.transport import PlainTransport
from penstock.protocol.apis import ApiKey

IS_LONG = os.environ.get("PENSTOCK_LONG") == "1"
FRAMES = 1_000_000 if IS_LONG else 100_000
LONG_S = 7200  # On a machine that has ten times the work it can do.
SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
AT_ONCE = 200
RECEIVE_BYTES_MAX = 524_288  # sasl.server.max.receive.size
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)
LEAD = "listener.name.sasl_plaintext"
ANSWER = api_versions_response(served_versions()).encode(0)


def mechanisms() -> SaslMechanisms:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    users = f'{module} required user_{USER}="{PASSWORD}";'
    config = BrokerConfig(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            f"{LEAD}.plain.sasl.jaas.config": users,
            f"{LEAD}.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
        }
    )
    return SaslMechanisms(
        config, "SASL_PLAINTEXT", protocol="SASL_PLAINTEXT", now_ms=lambda: 1_700_000_000_000
    )


def image() -> ClusterImage:
    texts = {name: credential(name).text() for name in MECHANISMS if name.startswith("SCRAM")}
    return replace(ClusterImage(cluster_id="c"), configs={("users", USER): texts})


class Broker:
    """What stands behind a listener, and which APIs it was asked for."""

    def __init__(self) -> None:
        self.served: set[int] = set()
        offered, seen = mechanisms(), image()
        self._gate = SaslGate(
            self._serve,
            lambda: offered.offered(KnownUsers(seen, None, b"decoys")),
            frame_bytes_max=100 << 20,
            failure_delay_s=0.0,
            session_ms_max=lambda _mechanism: 0,
            now_ms=lambda: 1_700_000_000_000,
        )
        self._pool = BufferPool()
        self._readers: Readers | None = None  # None: nobody has connected yet.
        self._limits = ConnectionLimits(frame_bytes_max=RECEIVE_BYTES_MAX)

    def _serve(self, _connection: IncomingConnection, frame: memoryview) -> list[Any]:
        self.served.add(int.from_bytes(frame[:2], "big", signed=True))
        return [len(ANSWER).to_bytes(4, "big") + ANSWER]

    def _readers_of(self, loop: asyncio.AbstractEventLoop) -> Readers:
        if self._readers is None:
            self._readers = Readers(loop)
        return self._readers

    def connect(self, data: bytes) -> tuple[socket.socket, IncomingConnection]:
        """A peer that sends this, and then nothing more."""
        theirs, ours = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        theirs.send(data)
        theirs.shutdown(socket.SHUT_WR)
        connection = IncomingConnection(
            PlainTransport(ours),
            loop=asyncio.get_running_loop(),
            dispatch=self._gate,
            limits=self._limits,
            pool=self._pool,
            readers=self._readers_of(asyncio.get_running_loop()),
            session=Session(listener="SASL_PLAINTEXT", address="127.0.0.1:1"),
        )
        connection.start()
        return theirs, connection


async def throw(conversations: Iterator[Conversation], broker: Broker) -> int:
    """Let each have a connection, which must end; how many frames that were."""
    frames = 0
    while frames < FRAMES:
        thrown = list(islice(conversations, AT_ONCE))
        opened = [broker.connect(one.data) for one in thrown]
        frames += sum(one.frames for one in thrown)
        async with asyncio.timeout(60):
            while not all(connection.is_closed for _, connection in opened):
                await asyncio.sleep(0)
        for theirs, _ in opened:
            theirs.close()
    return frames


def endless(logins: HostileLogins) -> Iterator[Conversation]:
    while True:
        yield logins.conversation()


@pytest.mark.timeout(LONG_S if IS_LONG else None)
def test_nobody_comes_in_without_a_proof(caplog: pytest.LogCaptureFixture) -> None:
    logins = HostileLogins(SEED)
    broker = Broker()
    conversations = chain(logins.cut_everywhere(), endless(logins))
    with caplog.at_level(logging.INFO):
        assert asyncio.run(throw(conversations, broker)) >= FRAMES
    assert broker.served == {ApiKey.API_VERSIONS}
    assert [record for record in caplog.records if record.exc_info] == []
    assert not any(PASSWORD in message for message in caplog.messages)
    assert len(caplog.records) < FRAMES / 10  # Lines about strangers are bounded.
