"""The shell around any machine: turns, tickets, loading, and moving with the partition.

The machine here is a toy: it keeps the words that were written, and whoever asks for a word that
is not there yet waits for it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.cluster.image.image import ClusterImage, PartitionImage, PartitionState, TopicImage
from penstock.coordination.answers import LateAnswer, LateAnswers, Ticket
from penstock.coordination.led_shard import LedShard
from penstock.coordination.machine import Journal
from penstock.coordination.shell import CoordinatorShell
from penstock.errors import CoordinatorLoadInProgress, ErrorCode, InvalidRequest, NotCoordinator
from penstock.replica.partition import Partition
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log

TOPIC = "__words"
BROKER, OTHER = 1, 2


class Words:
    """A machine: all words of a partition, and who waits for which."""

    def __init__(self, journal: Journal) -> None:
        self.words: list[str] = []
        self.is_started = False
        self._journal = journal
        self._waiting: dict[str, Ticket[str]] = {}
        self._answers = LateAnswers()

    def write(self, word: str) -> str:
        self._journal.write([(word.encode(), b"")])
        self.words.append(word)
        if word in self._waiting:
            self._answers.give(self._waiting.pop(word), f"here is {word}")
        return f"wrote {word}"

    def wait_for(self, word: str) -> str | Ticket[str]:
        if word in self.words:
            return f"{word} is there"
        ticket = self._waiting[word] = Ticket()
        return ticket

    def replay(self, key: bytes | None, _value: bytes | None, _offset: int, _id: int) -> None:
        self.words.append((key or b"").decode())

    def take_marker(self, producer_id: int, *, is_committed: bool, marker_offset: int) -> None:
        """No word is part of a transaction."""

    def start(self) -> None:
        self.is_started = True

    def stop(self, error: ErrorCode) -> None:
        for ticket in self._waiting.values():
            self._answers.give(ticket, error.name)
        self._waiting.clear()

    def next_timer_ms(self) -> int | None:
        return None

    def ring(self) -> None:
        """There are no timers."""

    def take_answers(self) -> Sequence[LateAnswer]:
        return self._answers.take()

    def content(self) -> str:
        return f"{len(self.words)} words"


class WordCoordinator(CoordinatorShell[Words]):
    """A coordinator of one partition, on a log in a directory."""

    def __init__(self, directory: Path) -> None:
        home = directory / f"{TOPIC}-0"
        home.mkdir()
        self.log = Log.open(home, config=LogConfig(), now_ms=0, clean=True, report=lambda _: None)
        self.partition = Partition(
            topic=TOPIC, partition=0, topic_id=bytes(16), broker_id=BROKER, log=self.log
        )
        super().__init__(
            topic=TOPIC, partitions=self, now_ms=lambda: 0, logger=logging.getLogger("words")
        )

    def get(self, _topic: str, _partition: int) -> Partition:
        return self.partition

    def _new_machine(self, led: LedShard[Words]) -> Words:
        return Words(led.log)

    def lead(self, epoch: int, *, leader: int = BROKER) -> None:
        state = PartitionState(
            leader=leader, leader_epoch=epoch, isr=(leader,), min_isr=1, partition_epoch=epoch
        )
        placed = PartitionImage(replicas=(BROKER, OTHER), state=state)
        self.partition.apply(placed, {})
        made = TopicImage(name=TOPIC, topic_id=bytes(16), partitions={0: placed})
        self.take_image(ClusterImage(cluster_id="c", topics={TOPIC: made}))

    async def until_loaded(self) -> None:
        while self.is_loading:
            await asyncio.sleep(0)


Story = Callable[[WordCoordinator], Coroutine[Any, Any, None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Story], None]:
    """Run a story with a coordinator that leads in epoch 0."""

    async def run(story: Story) -> None:
        coordinator = WordCoordinator(tmp_path)
        coordinator.lead(0)
        await story(coordinator)
        coordinator.close()

    return lambda story: asyncio.run(run(story))


def test_an_answer_comes_with_somebody_elses_request(play: Callable[[Story], None]) -> None:
    async def story(words: WordCoordinator) -> None:
        waiting: Any = words.run("id", lambda machine: machine.wait_for("a"))
        assert words.run("id", lambda machine: machine.write("a")) == "wrote a"
        assert await waiting == "here is a"

    play(story)


def test_an_answer_that_is_ready_in_the_same_turn_is_given_at_once(
    play: Callable[[Story], None],
) -> None:
    def wait_and_write(machine: Words) -> str | Ticket[str]:
        ticket = machine.wait_for("a")
        machine.write("a")
        return ticket

    async def story(words: WordCoordinator) -> None:
        assert words.run("id", wait_and_write) == "here is a"

    play(story)


def test_a_request_that_is_refused_still_answers_others(play: Callable[[Story], None]) -> None:
    def write_and_refuse(machine: Words) -> str:
        machine.write("a")
        raise InvalidRequest("no")

    async def story(words: WordCoordinator) -> None:
        waiting: Any = words.run("id", lambda machine: machine.wait_for("a"))
        with pytest.raises(InvalidRequest):
            words.run("id", write_and_refuse)
        assert await waiting == "here is a"

    play(story)


def test_whoever_waits_is_told_when_the_partition_moves(play: Callable[[Story], None]) -> None:
    async def story(words: WordCoordinator) -> None:
        waiting: Any = words.run("id", lambda machine: machine.wait_for("a"))
        words.lead(1, leader=OTHER)
        assert words._led == {}
        with pytest.raises(NotCoordinator):
            await waiting  # Good news would rest on a log that is not ours any more.

    play(story)


def test_a_log_that_cannot_be_read_leaves_nothing_of_it_behind(
    play: Callable[[Story], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    real_read = LedShard.read
    tries: list[Words] = []

    async def read(self: LedShard[Words], **bounds: Any) -> None:
        tries.append(self.shard)
        await real_read(self, **bounds)
        if len(tries) == 1:
            raise OSError("half of it is all there is")

    async def story(words: WordCoordinator) -> None:
        words.run("id", lambda machine: machine.write("a"))
        monkeypatch.setattr(LedShard, "read", read)
        words.lead(1)
        with pytest.raises(CoordinatorLoadInProgress):
            words.led_shard("id")
        async with asyncio.timeout(5):
            await words.until_loaded()
        first, second = tries
        assert not first.is_started
        assert second.is_started
        assert second.words == ["a"]

    play(story)


def test_nothing_is_led_after_closing(play: Callable[[Story], None]) -> None:
    async def story(words: WordCoordinator) -> None:
        words.close()
        words.lead(2)
        assert words._led == {}

    play(story)
