"""Guards: what a partition remembers of a producer between asking for it and writing for it.

Before the first batch of a transaction is appended, the coordinator is asked whether the partition
is part of it. If a marker arrives while the answer is on its way, the transaction the answer tells
of is over, and the batch would open one that nobody ever ends. So a guard is put up before asking,
a marker takes it down, and only a batch whose guard still stands is appended (KIP-890).
"""

Key = tuple[str, int, int]  # Topic, partition, producer id.


class Guard:
    """Put up for one producer in one partition."""

    __slots__ = ("lowest_sequence", "producer_epoch", "since_ms")

    def __init__(self, producer_epoch: int, sequence: int, now_ms: int) -> None:
        self.producer_epoch = producer_epoch
        self.lowest_sequence = sequence  # Of this epoch: each counts from 0.
        self.since_ms = now_ms


class Guards:
    """All that stand on this broker."""

    def __init__(self) -> None:
        self._standing: dict[Key, Guard] = {}

    def __len__(self) -> int:
        return len(self._standing)

    def put_up(self, key: Key, producer_epoch: int, sequence: int, *, now_ms: int) -> Guard:
        """The guard to show later; a producer whose earlier batch was refused has one already.

        It keeps the lowest sequence number seen: a partition that does not know the producer would
        take any number for the first, so a later batch must not slip in before a refused one.
        """
        guard = self._standing.get(key)
        if guard is None:
            guard = self._standing[key] = Guard(producer_epoch, sequence, now_ms)
        elif producer_epoch > guard.producer_epoch:
            guard.producer_epoch, guard.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == guard.producer_epoch and sequence < guard.lowest_sequence:
            guard.lowest_sequence = sequence
        return guard

    def stands(self, key: Key, guard: Guard) -> bool:
        return self._standing.get(key) is guard

    def drop(self, topic: str, partition: int, producer_id: int) -> None:
        self._standing.pop((topic, partition, producer_id), None)

    def drop_older(self, than_ms: int) -> None:
        """Take down what nobody came back for."""
        old = [key for key, guard in self._standing.items() if guard.since_ms < than_ms]
        for key in old:
            del self._standing[key]
