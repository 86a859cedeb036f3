"""Group histories as text: a line of what a client does, below it what everybody is told.

    > join a              a client asks in; from the second time on with the id it was given
    a: MEMBER_ID_REQUIRED, id a-1

Commands: join, sync, beat, leave, commit, wait, crash, break, mend, state, written, expire. Words
with `=` are details (`version=3`, `instance=i`, `assign=a:x,b:y`); `#` begins a comment.
"""

import shlex
from collections.abc import Callable

from tests.unit.groups.rig import Answer, Rig, Written

from penstock.errors import ErrorCode
from penstock.groups.record_formats import record_type
from penstock.protocol.messages.join_group import JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse

Details = dict[str, str]


class Transcript:
    """Plays the commands of a text on a rig and writes down what happens."""

    def __init__(self) -> None:
        self._rig = Rig()
        self._ids: dict[str, str] = {}
        self._generations: dict[str, int] = {}
        self._joins: list[tuple[str, Answer[JoinGroupResponse]]] = []
        self._syncs: list[tuple[str, Answer[SyncGroupResponse]]] = []
        self._written_count = 0

    def play(self, text: str) -> str:
        """The text with every answer written anew."""
        lines: list[str] = []
        for line in text.splitlines():
            if line.startswith("> "):
                words = shlex.split(line[2:], comments=True)
                lines += [line, *self._run(words), *self._news()]
            elif not line or line.startswith(("#", "settings")):
                lines.append(line)
            if line.startswith("settings "):
                self._rig = Rig(dict(word.split("=") for word in line.split()[1:]))
        return "\n".join(lines) + "\n"

    def _run(self, words: list[str]) -> list[str]:
        plain = [word for word in words[1:] if "=" not in word]
        details = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        command: Callable[[list[str], Details], list[str]] = getattr(self, f"_{words[0]}")
        return command(plain, details)

    # Commands

    def _join(self, names: list[str], details: Details) -> list[str]:
        (name,) = names
        protocols = details.get("protocols", "range:sub").split(",")
        answer = self._rig.join(
            name,
            details.get("id", self._ids.get(name, "")),
            version=int(details.get("version", "9")),
            instance_id=details.get("instance"),
            session_ms=int(details.get("session", "10000")),
            rebalance_ms=int(details.get("rebalance", "60000")),
            protocol_type=details.get("type", "consumer"),
            protocols=[(p.partition(":")[0], p.partition(":")[2].encode()) for p in protocols],
        )
        self._joins.append((name, answer))
        return []

    def _sync(self, names: list[str], details: Details) -> list[str]:
        (name,) = names
        pairs = [pair.split(":") for pair in details.get("assign", "").split(",") if pair]
        answer = self._rig.sync(
            self._id(name, details),
            self._generation(name, details),
            {self._ids.get(member, member): share.encode() for member, share in pairs},
            instance_id=details.get("instance"),
            protocol_name=details.get("protocol"),
        )
        self._syncs.append((name, answer))
        return []

    def _beat(self, names: list[str], details: Details) -> list[str]:
        return [
            f"{name}: "
            + self._rig.beat(
                self._id(name, details),
                self._generation(name, details),
                instance_id=details.get("instance"),
            ).name
            for name in names
        ]

    def _leave(self, names: list[str], details: Details) -> list[str]:
        instance = details.get("instance")
        asked = [(self._ids.get(name, name), instance) for name in names] or [("", instance)]
        told = self._rig.leave(*asked)
        return [
            f"{m.member_id or m.group_instance_id}: {_code(m.error_code)}" for m in told.members
        ]

    def _commit(self, names: list[str], details: Details) -> list[str]:
        name, offset = names
        if name == "nobody":
            code = self._rig.commit(int(offset))
        else:
            code = self._rig.commit(
                int(offset),
                self._id(name, details),
                self._generation(name, details),
                instance_id=details.get("instance"),
            )
        return [f"{name}: {code.name}"]

    def _wait(self, names: list[str], _details: Details) -> list[str]:
        self._rig.wait(int(names[0]))
        return []

    def _crash(self, _names: list[str], _details: Details) -> list[str]:
        self._joins.clear()
        self._syncs.clear()
        self._rig.reload()
        return self._state([], {})

    def _break(self, _names: list[str], _details: Details) -> list[str]:
        self._rig.break_journal()
        return []

    def _mend(self, _names: list[str], _details: Details) -> list[str]:
        self._rig.mend_journal()
        return []

    def _expire(self, _names: list[str], _details: Details) -> list[str]:
        return [f"expired {self._rig.shard.expire('g')}"]

    def _state(self, _names: list[str], _details: Details) -> list[str]:
        if self._rig.state() == "Dead":
            return ["no group"]
        group = self._rig.group()
        members = ", ".join(f"{m.member_id}={m.assignment.decode()}" for m in group.members)
        offset = self._rig.offset()
        known = "" if offset is None else f", offset {offset}"
        return [f"{group.state} generation {group.generation} [{members}]{known}"]

    def _written(self, _names: list[str], _details: Details) -> list[str]:
        """What went to the journal since the last look."""
        new = self._rig.journal.log[self._written_count :]
        self._written_count = len(self._rig.journal.log)
        names = {1: "offset", 2: "group"}
        return [
            f"{names[record_type(entry.key)]}{' tombstone' if entry.value is None else ''}"
            for entry in new
            if isinstance(entry, Written)
        ] or ["nothing"]

    # Answers

    def _news(self) -> list[str]:
        lines = []
        for name, join in [pair for pair in self._joins if not pair[1].waits]:
            self._joins.remove((name, join))
            lines.append(f"{name}: {self._joined(name, join.told)}")
        for name, sync in [pair for pair in self._syncs if not pair[1].waits]:
            self._syncs.remove((name, sync))
            told = sync.told
            shown = f"assigned {told.assignment.decode()!r}"
            lines.append(f"{name}: {_code(told.error_code) if told.error_code else shown}")
        return lines

    def _joined(self, name: str, told: JoinGroupResponse) -> str:
        if told.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._ids[name] = told.member_id
            return f"MEMBER_ID_REQUIRED, id {told.member_id}"
        if told.error_code:
            return _code(told.error_code)
        self._ids[name] = told.member_id
        self._generations[name] = told.generation_id
        members = ", ".join(f"{m.member_id}={m.metadata.decode()}" for m in told.members)
        return (
            f"{told.member_id} joined generation {told.generation_id}, {told.protocol_name}, "
            f"leader {told.leader}"
            + (f" of {members}" if members else "")
            + (", assigns nothing" if told.skip_assignment else "")
        )

    def _id(self, name: str, details: Details) -> str:
        return details.get("id", self._ids.get(name, name))

    def _generation(self, name: str, details: Details) -> int:
        return int(details.get("generation", self._generations.get(name, -1)))


def _code(number: int) -> str:
    return ErrorCode(number).name
