"""What a fetcher knows of its partitions and of its session with the leader; no clock, no socket.

Requests belong to an incremental fetch session: each names only the partitions whose position
changed, so a thousand quiet ones cost nothing. Whenever it is in doubt what the leader knows, the
session is given up and the next request says it all.

A partition that fails is left out for a while, longer each time. One that is throttled is left out
until there is room for it.
"""

import heapq
from collections.abc import Iterable
from typing import Final

from penstock.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic
from penstock.replica.following import Position, position_of
from penstock.replica.partition import Partition

NO_SESSION: Final = 0
FULL: Final = 0  # The epoch of a request that names everything.
_EPOCH_MAX: Final = 0x7FFFFFFF

Key = tuple[bytes, int]  # Topic id and partition.


class Followed:
    """A partition in the care of a fetcher."""

    __slots__ = ("fail_count", "is_out", "is_paused", "key", "partition", "sent")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key: Key = (partition.topic_id, partition.partition)
        self.sent: Position | None = None  # What the leader's session knows; None: nothing.
        self.fail_count = 0
        self.is_paused = False
        self.is_out = False  # Not followed any more.


class FetchBook:
    """All that goes into a request, and what an answer must fit to."""

    def __init__(self) -> None:
        self._followed: dict[Partition, Followed] = {}
        self._by_key: dict[Key, Followed] = {}
        self._changed: dict[Followed, None] = {}  # To be named in the next request.
        self._forgotten: dict[Key, None] = {}  # The session has them, and should not.
        self._paused: list[tuple[float, int, Followed]] = []
        self._pause_count = 0
        self._held_back: dict[Followed, None] = {}
        self.session_id = NO_SESSION
        self.session_epoch = FULL

    def __len__(self) -> int:
        return len(self._followed)

    # Whom to follow

    def follow(self, partition: Partition) -> bool:
        """Take a partition on, or its new leader epoch; whether there is something to ask."""
        followed = self._followed.get(partition)
        if followed is None:
            followed = self._followed[partition] = Followed(partition)
            self._by_key[followed.key] = followed
        elif followed.sent is not None and followed.sent.leader_epoch == partition.leader_epoch:
            return False  # The next request says the rest.
        followed.is_paused = False
        followed.fail_count = 0
        self._changed[followed] = None
        return True

    def remove(self, partition: Partition) -> None:
        followed = self._followed.pop(partition, None)
        if followed is None:
            return
        followed.is_out = True
        if self._by_key.get(followed.key) is followed:
            del self._by_key[followed.key]
        self._changed.pop(followed, None)
        self._held_back.pop(followed, None)
        self._forget(followed)

    def find(self, key: Key) -> Followed | None:
        """A partition that was asked for; None: nobody wants an answer for it any more."""
        followed = self._by_key.get(key)
        return followed if followed is not None and followed.sent is not None else None

    def ask_again(self, followed: Followed) -> None:
        """Its position changed: the next request names it."""
        if not followed.is_out:
            self._changed[followed] = None

    def _forget(self, followed: Followed) -> None:
        if followed.sent is not None:
            self._forgotten[followed.key] = None
            followed.sent = None

    @property
    def has_news(self) -> bool:
        return bool(self._changed)

    @property
    def failed_count(self) -> int:
        return sum(1 for followed in self._followed.values() if followed.fail_count)

    # Who is left out

    def put_off(self, followed: Followed, until_s: float) -> None:
        """Leave a partition out of the requests for a while."""
        if followed.is_out:
            return
        followed.is_paused = True
        self._changed.pop(followed, None)
        self._forget(followed)
        self._pause_count += 1
        heapq.heappush(self._paused, (until_s, self._pause_count, followed))

    def resume(self, now_s: float) -> None:
        """Those whose pause is over are asked for again."""
        while self._paused and self._paused[0][0] <= now_s:
            followed = heapq.heappop(self._paused)[2]
            if followed.is_paused and not followed.is_out:
                followed.is_paused = False
                self._changed[followed] = None

    @property
    def next_resume_s(self) -> float | None:
        """When the next pause ends; None: nobody pauses."""
        return self._paused[0][0] if self._paused else None

    @property
    def about_to_ask(self) -> Iterable[Followed]:
        return tuple(self._changed)

    def hold_back(self, followed: Followed) -> None:
        self._changed.pop(followed, None)
        self._held_back[followed] = None
        self._forget(followed)

    def let_through(self) -> None:
        """There is room again for those who were held back."""
        self._changed |= self._held_back
        self._held_back.clear()

    @property
    def has_held_back(self) -> bool:
        return bool(self._held_back)

    @property
    def has_work(self) -> bool:
        """Whether there is a partition that is neither paused nor held back."""
        if not self._paused and not self._held_back:
            return bool(self._followed)
        idle = {f for _, _, f in self._paused if f.is_paused and not f.is_out}
        return len(idle.union(self._held_back)) < len(self._followed)

    # The session

    def lose_session(self, *, is_gone: bool = False) -> None:
        """The next request names everything, and closes the session, unless that is gone."""
        if is_gone:
            self.session_id = NO_SESSION
        self.session_epoch = FULL
        self._forgotten.clear()
        for followed in self._followed.values():
            followed.sent = None
            if not followed.is_paused and followed not in self._held_back:
                self._changed[followed] = None

    def continues(self, session_id: int) -> bool:
        """Whether an answer is of the session the request was made in, or begins one."""
        if self.session_epoch != FULL:
            if session_id != self.session_id:
                return False
            epoch = self.session_epoch
            self.session_epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
            return True
        self.session_id = session_id
        if session_id != NO_SESSION:
            self.session_epoch = 1
        return True

    def next_topics(self, partition_bytes_max: int) -> list[FetchTopic]:
        """The partitions to be named now; from then on the leader knows where they are."""
        if self.session_epoch == FULL and self.session_id == NO_SESSION:
            self._name_all()  # The leader keeps no session: it must be told each time.
        topics: dict[bytes, FetchTopic] = {}
        for followed in self._changed:
            topic_id, number = followed.key
            position = followed.sent = position_of(followed.partition)
            self._forgotten.pop(followed.key, None)
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic_id=topic_id, partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=number,
                    current_leader_epoch=position.leader_epoch,
                    fetch_offset=position.fetch_offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=partition_bytes_max,
                )
            )
        self._changed.clear()
        return list(topics.values())

    def _name_all(self) -> None:
        for followed in self._followed.values():
            if not followed.is_paused and followed not in self._held_back:
                self._changed[followed] = None

    def next_forgotten(self) -> list[ForgottenTopic]:
        """The partitions that the session should drop; a full request needs to name none."""
        forgotten: dict[bytes, ForgottenTopic] = {}
        if self.session_epoch != FULL:
            for topic_id, number in self._forgotten:
                topic = forgotten.get(topic_id)
                if topic is None:
                    topic = forgotten[topic_id] = ForgottenTopic(topic_id=topic_id, partitions=[])
                topic.partitions.append(number)
        self._forgotten.clear()
        return list(forgotten.values())
