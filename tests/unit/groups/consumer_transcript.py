"""Histories of consumer groups as text: a line of what happens, below it what everybody is told.

    topics t=3                       what there is to read
    > join a t                       a consumer of the new protocol asks in
    a: epoch 2, has t-0 t-1 t-2      its epoch, and its assignment if it is told one

Before it beats, a consumer does as it was last told, unless it is `slow` or says itself what it
`owns`. Words with `=` are details (`instance=i`, `epoch=3`); `#` begins a comment. `step` lets a
classic consumer do what it would do next. `state` shows what the coordinator knows, `written` the
records since the last look.
"""

import shlex
from collections.abc import Callable

from tests.unit.groups.consumer_rig import ClassicConsumer, Consumer, ConsumerRig, Held
from tests.unit.groups.rig import Written

from penstock.errors import ErrorCode
from penstock.groups.consumer.member import ConsumerMember, each_partition
from penstock.groups.record_formats import record_type
from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

Details = dict[str, str]

_RECORDS = {
    1: "offset",
    2: "classic group",
    3: "group",
    4: "partition metadata",
    5: "member",
    6: "target epoch",
    7: "target",
    8: "current",
    16: "pattern",
}


class ConsumerTranscript:
    """Plays the commands of a text on a rig and writes down what happens."""

    def __init__(self) -> None:
        self._rig = ConsumerRig()
        self._new: dict[str, Consumer] = {}
        self._classic: dict[str, ClassicConsumer] = {}
        self._written_count = 0

    def play(self, text: str) -> str:
        """The text with every answer written anew."""
        lines: list[str] = []
        for line in text.splitlines():
            if line.startswith("> "):
                words = shlex.split(line[2:], comments=True)
                lines += [line, *self._run(words)]
            elif not line or line.startswith(("#", "topics ", "settings ")):
                lines.append(line)
                self._set_up(line.split())
        return "\n".join(lines) + "\n"

    def _set_up(self, words: list[str]) -> None:
        details = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        if words[:1] == ["settings"]:
            self._rig = ConsumerRig(details)
        elif words[:1] == ["topics"]:
            self._rig.make_topics(**{name: int(count) for name, count in details.items()})

    def _run(self, words: list[str]) -> list[str]:
        plain = [word for word in words[1:] if "=" not in word]
        details = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        command: Callable[[list[str], Details], list[str]] = getattr(self, f"_{words[0]}")
        return command(plain, details)

    # Consumers of the new protocol

    def _join(self, words: list[str], details: Details) -> list[str]:
        name = words[0]
        consumer = self._new.get(name) or Consumer(self._rig, name)
        self._new[name] = consumer
        if len(words) > 1:
            consumer.topics = words[1].split(",")
        self._tell(consumer, details)
        return [f"{name}: {self._told(consumer.join(is_lost='lost' in words))}"]

    def _tell(self, consumer: Consumer, details: Details) -> None:
        consumer.instance_id = details.get("instance", consumer.instance_id)
        consumer.pattern = details.get("pattern", consumer.pattern)
        consumer.assignor = details.get("assignor", consumer.assignor)
        consumer.rebalance_ms = int(details.get("rebalance", consumer.rebalance_ms))
        consumer.member_id = details.get("id", consumer.member_id)
        consumer.epoch = int(details.get("epoch", consumer.epoch))
        if "topics" in details:
            consumer.topics = details["topics"].split(",") if details["topics"] else []

    def _beat(self, words: list[str], details: Details) -> list[str]:
        name, *how = words
        consumer = self._new[name]
        self._tell(consumer, details)
        if "owns" in details:
            consumer.owned = self._rig.numbered(details["owns"])
        elif "slow" not in how:
            consumer.settle()
        says_more = {"topics", "pattern", "assignor", "rebalance"} & details.keys()
        if "fully" in how or says_more:
            answer = consumer.full_beat(is_lost="lost" in how)
        else:
            answer = consumer.beat(is_lost="lost" in how, is_silent="slow" in how)
        return [f"{name}: {self._told(answer)}"]

    def _told(self, answer: ConsumerGroupHeartbeatResponse) -> str:
        if answer.error_code:
            return f"{_code(answer.error_code)}: {answer.error_message}"
        if answer.assignment is None:
            return f"epoch {answer.member_epoch}"
        topics = answer.assignment.topic_partitions
        return (
            f"epoch {answer.member_epoch}, "
            f"has {self._list({(t.topic_id, p) for t in topics for p in t.partitions})}"
        )

    def _leave(self, words: list[str], details: Details) -> list[str]:
        name = words[0]
        if name in self._classic:
            self._classic[name].leave()
            return [f"{name}: {self._classic[name].last_error.name}"]
        epoch = -2 if "awhile" in words else -1
        return [f"{name}: {self._told(self._new[name].leave(epoch=epoch))}"]

    def _remove(self, _words: list[str], details: Details) -> list[str]:
        """An operator takes out a static member by its instance id."""
        (result,) = self._rig.leave(("", details["instance"])).members
        return [_code(result.error_code)]

    # Consumers of the classic protocol

    def _classic_joins(self, name: str, words: list[str], details: Details) -> ClassicConsumer:
        consumer = ClassicConsumer(
            self._rig,
            name,
            words[0].split(","),
            instance_id=details.get("instance"),
            is_eager="eager" in words,
            rebalance_ms=int(details.get("rebalance", "60000")),
        )
        self._classic[name] = consumer
        return consumer

    def _step(self, words: list[str], details: Details) -> list[str]:
        name, *rest = words
        consumer = self._classic.get(name) or self._classic_joins(name, rest, details)
        if "topics" in details:
            consumer.topics, consumer.phase = details["topics"].split(","), "out"
        consumer.generation = int(details.get("generation", consumer.generation))
        consumer.step()
        error = consumer.last_error
        shown = f", {error.name}" if error and consumer.phase in ("out", "in") else ""
        if consumer.phase == "joined":
            shown = f" as {consumer.member_id} in generation {consumer.generation}"
        if consumer.phase == "in":
            shown += f", has {self._list(consumer.owned)}"
        return [f"{name}: {consumer.phase}{shown}"]

    # Offsets

    def _commit(self, words: list[str], details: Details) -> list[str]:
        name, offset = words
        consumer = self._new.get(name)
        member_id = "" if name == "nobody" else self._member_id(name)
        epoch = -1 if name == "nobody" else consumer.epoch if consumer else self._generation(name)
        code = self._rig.commit(
            int(offset),
            member_id,
            int(details.get("epoch", epoch)),
            topic=details.get("topic", "t"),
            partition=int(details.get("partition", "0")),
        )
        return [f"{name}: {code.name}"]

    def _member_id(self, name: str) -> str:
        return self._new[name].member_id if name in self._new else self._classic[name].member_id

    def _generation(self, name: str) -> int:
        return self._classic[name].generation

    # The world

    def _wait(self, words: list[str], _details: Details) -> list[str]:
        self._rig.wait(int(words[0]))
        return []

    def _crash(self, _words: list[str], _details: Details) -> list[str]:
        before = self._state([], {})
        self._rig.reload()
        for consumer in self._classic.values():
            consumer.disconnect()
        assert self._state([], {}) == before, "a loaded group is another one"
        return []

    def _break(self, _words: list[str], _details: Details) -> list[str]:
        self._rig.break_journal()
        return []

    def _mend(self, _words: list[str], _details: Details) -> list[str]:
        self._rig.mend_journal()
        return []

    def _topics(self, _words: list[str], details: Details) -> list[str]:
        self._rig.make_topics(**{name: int(count) for name, count in details.items()})
        return []

    def _delete(self, words: list[str], _details: Details) -> list[str]:
        self._rig.delete_topic(words[0])
        return []

    def _config(self, _words: list[str], details: Details) -> list[str]:
        self._rig.configure_group(**{key.replace(".", "_"): v for key, v in details.items()})
        return []

    # Looking

    def _state(self, _words: list[str], _details: Details) -> list[str]:
        group = self._rig.shard.groups.get("g")
        if group is None:
            return ["no group"]
        if not self._rig.is_consumer_group:
            return [f"a {group.kind} group, {group.state}"]
        known = self._rig.known
        members = [self._member_line(member) for _, member in sorted(known.members.items())]
        return [
            f"{known.phase}, epoch {known.group_epoch}, target of {known.assignment_epoch}",
            *members,
        ]

    def _member_line(self, member: ConsumerMember) -> str:
        parts = [f"  {member.member_id} epoch {member.epoch} {member.state.name.lower()}"]
        if member.classic is not None:
            parts.append("classic")
        parts.append(f"has {self._list(set(each_partition(member.assigned)))}")
        if member.revoking:
            parts.append(f"gives up {self._list(set(each_partition(member.revoking)))}")
        target = set(each_partition(self._rig.known.target_of(member.member_id)))
        if target != set(each_partition(member.assigned)):
            parts.append(f"shall have {self._list(target)}")
        return ", ".join(parts)

    def _written(self, _words: list[str], _details: Details) -> list[str]:
        """What went to the journal since the last look."""
        new = self._rig.journal.log[self._written_count :]
        self._written_count = len(self._rig.journal.log)
        return [
            f"  {_RECORDS[record_type(entry.key)]}{' tombstone' if entry.value is None else ''}"
            for entry in new
            if isinstance(entry, Written)
        ] or ["  nothing"]

    def _list(self, held: Held) -> str:
        return " ".join(self._rig.named(held)) or "nothing"


def _code(number: int) -> str:
    return ErrorCode(number).name
