"""A written-down history of a group, played over the wire to a server and in real time.

The texts are those of tests/golden/groups. Member ids are random here, so they are numbered in the
order in which they turn up; answers come when they come, so each command is given a moment.
"""

import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from tests.support.processes import HOST

from penstock.client.wire.connection import BrokerConnection
from penstock.errors import ErrorCode, ProtocolError
from penstock.protocol.apis import Request
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from penstock.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

TOPIC = "t"
_MOMENT_S = 0.15
_PATIENCE_S = 8
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
Details = dict[str, str]


class LiveTranscript:
    """One group on one server; every client has connections of its own."""

    def __init__(self, port: int, group: str) -> None:
        self._port = port
        self._group = group
        self._threads = ThreadPoolExecutor(max_workers=16)
        self._ids: dict[str, str] = {}
        self._generations: dict[str, int] = {}
        self._waiting: list[tuple[str, Future[JoinGroupResponse | SyncGroupResponse]]] = []
        self._numbers: dict[str, str] = {}
        self._lock = threading.Lock()

    def play(self, text: str) -> list[str]:
        """The commands, each followed by what was answered."""
        lines: list[str] = []
        for step in text.split("> ")[1:]:
            command, *told = step.splitlines()
            if command != "written":
                expected = {line.partition(":")[0] for line in told if ":" in line}
                lines += [f"> {command}", *self._run(command.split()), *self._news(expected)]
        self._threads.shutdown(wait=False, cancel_futures=True)
        return [self._numbered(line) for line in lines]

    def _run(self, words: list[str]) -> list[str]:
        plain = [word for word in words[1:] if "=" not in word]
        details = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        command: Callable[[list[str], Details], list[str]] = getattr(self, f"_{words[0]}")
        return command(plain, details)

    # Commands

    def _join(self, names: list[str], details: Details) -> list[str]:
        (name,) = names
        offered = [part.partition(":") for part in details.get("protocols", "range:sub").split(",")]
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=int(details.get("session", "10000")),
            rebalance_timeout_ms=int(details.get("rebalance", "60000")),
            member_id=details.get("id", self._ids.get(name, "")),
            group_instance_id=details.get("instance"),
            protocol_type=details.get("type", "consumer"),
            protocols=[
                JoinGroupRequestProtocol(name=protocol, metadata=metadata.encode())
                for protocol, _, metadata in offered
            ],
        )
        self._ask_later(name, request, int(details.get("version", "9")))
        return []

    def _sync(self, names: list[str], details: Details) -> list[str]:
        (name,) = names
        pairs = [pair.split(":") for pair in details.get("assign", "").split(",") if pair]
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation(name, details),
            member_id=self._id(name, details),
            group_instance_id=details.get("instance"),
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=self._ids.get(member, member), assignment=share.encode()
                )
                for member, share in pairs
            ],
        )
        self._ask_later(name, request, 4)
        return []

    def _beat(self, names: list[str], details: Details) -> list[str]:
        lines = []
        for name in names:
            request = HeartbeatRequest(
                group_id=self._group,
                generation_id=self._generation(name, details),
                member_id=self._id(name, details),
                group_instance_id=details.get("instance"),
            )
            lines.append(f"{name}: {_code(self._ask(name, request, 4).error_code)}")
        return lines

    def _leave(self, names: list[str], details: Details) -> list[str]:
        instance = details.get("instance")
        asked = [(self._ids.get(name, name), instance) for name in names] or [("", instance)]
        request = LeaveGroupRequest(
            group_id=self._group,
            members=[MemberIdentity(member_id=m, group_instance_id=i) for m, i in asked],
        )
        told = self._ask("operator", request, 5)
        if told.error_code:
            return [_code(told.error_code)]
        return [
            f"{m.member_id or m.group_instance_id}: {_code(m.error_code)}" for m in told.members
        ]

    def _commit(self, names: list[str], details: Details) -> list[str]:
        name, offset = names
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=int(offset), committed_metadata=""
        )
        is_nobody = name == "nobody"
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=-1 if is_nobody else self._generation(name, details),
            member_id="" if is_nobody else self._id(name, details),
            group_instance_id=details.get("instance"),
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        )
        told = self._ask(name, request, 8)
        return [f"{name}: {_code(told.topics[0].partitions[0].error_code)}"]

    def _wait(self, names: list[str], _details: Details) -> list[str]:
        time.sleep(int(names[0]) / 1000 + _MOMENT_S)  # The text tells time to pass.
        return []

    def _state(self, _names: list[str], _details: Details) -> list[str]:
        request = DescribeGroupsRequest(groups=[self._group])
        (group,) = self._ask("operator", request, 5).groups
        members = sorted(f"{m.member_id}={m.member_assignment.decode()}" for m in group.members)
        return [f"{group.group_state} {[self._numbered(member) for member in members]}"]

    # The wire

    def _ask(self, client: str, request: Request, version: int) -> Any:
        with BrokerConnection(HOST, self._port, client_id=client, timeout_s=120) as connection:
            return connection.request(request, version)

    def _ask_later(self, client: str, request: Request, version: int) -> None:
        future = self._threads.submit(self._ask, client, request, version)
        self._waiting.append((client, future))

    def _news(self, expected: set[str]) -> list[str]:
        """What arrived: at least what the text expects, however slow the server is today."""
        wait([future for name, future in self._waiting if name in expected], timeout=_PATIENCE_S)
        time.sleep(_MOMENT_S)  # Room for an answer that should not come.
        arrived = [pair for pair in self._waiting if pair[1].done()]
        self._waiting = [pair for pair in self._waiting if not pair[1].done()]
        return sorted(f"{name}: {self._told(name, future)}" for name, future in arrived)

    def _told(self, name: str, future: "Future[JoinGroupResponse | SyncGroupResponse]") -> str:
        try:
            told = future.result()
        except (OSError, ProtocolError) as error:
            return type(error).__name__
        if isinstance(told, JoinGroupResponse):
            return self._joined(name, told)
        return _code(told.error_code) if told.error_code else f"assigned {told.assignment!r}"

    def _joined(self, name: str, told: JoinGroupResponse) -> str:
        if told.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._ids[name] = told.member_id
        if told.error_code:
            return _code(told.error_code)
        self._ids[name] = told.member_id
        self._generations[name] = told.generation_id
        members = sorted(f"{m.member_id}={m.metadata.decode()}" for m in told.members)
        return (
            f"{told.member_id} joined generation {told.generation_id}, {told.protocol_name}, "
            f"leader {told.leader} of {[self._numbered(member) for member in members]}"
            f"{', assigns nothing' if told.skip_assignment else ''}"
        )

    def _id(self, name: str, details: Details) -> str:
        return details.get("id", self._ids.get(name, name))

    def _generation(self, name: str, details: Details) -> int:
        return int(details.get("generation", self._generations.get(name, -1)))

    def _numbered(self, text: str) -> str:
        """The text with random ids in the order in which they first turned up."""
        return _UUID.sub(
            lambda found: self._numbers.setdefault(found[0], f"#{len(self._numbers) + 1}"), text
        )


def _code(number: int) -> str:
    return ErrorCode(number).name
