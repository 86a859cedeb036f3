"""Guards: what a partition remembers of a producer between asking for it and writing for it.

Before the first batch of a transaction is appended, the coordinator is asked whether the partition
is part of it. If the transaction ends while the answer is on its way, the answer tells of something
that is over, and the batch would open a transaction that nobody ever ends. So a guard is put up
before asking, the marker of the end takes it down, and only a batch whose guard still stands is
appended (KIP-890).

What a marker may end depends on the version of its transaction
(`TransactionMarker.last_epoch_ended`):

- Version 1: a producer keeps its epoch, so a marker of epoch E ends what has epoch E or an older
  one. The client asks for its next transaction only once the marker is everywhere, so a guard of
  epoch E that the marker meets belongs to the transaction that it ends.
- Version 2: every transaction has its own epoch, and its end carries the next one. The same goes
  for whatever the coordinator ends by itself. So a marker of epoch E ends epochs below E. Whoever
  writes with epoch E began after that end, perhaps before its marker came, and only a marker of a
  later epoch ends it.

A marker never ends what has a later epoch than its own; one that comes twice or late ends nothing
of version 2. A marker that the log refuses ends nothing at all.

Guards count for one leader epoch: in between another leader may have written the marker.
"""

Key = tuple[str, int, int]  # Topic, partition, producer id.


class Guard:
    """Put up for one epoch of a producer in one partition."""

    __slots__ = ("is_over", "leader_epoch", "lowest_sequence", "since_ms")

    def __init__(self, leader_epoch: int, sequence: int, now_ms: int) -> None:
        self.leader_epoch = leader_epoch
        self.lowest_sequence = sequence  # Of this epoch: each counts from 0.
        self.since_ms = now_ms
        self.is_over = False  # What it was put up for has ended.


class Guards:
    """All that stand on this broker."""

    def __init__(self) -> None:
        self._standing: dict[Key, dict[int, Guard]] = {}  # By the producer's epoch.

    def __len__(self) -> int:
        return sum(map(len, self._standing.values()))

    def put_up(
        self, key: Key, producer_epoch: int, sequence: int, *, leader_epoch: int, now_ms: int
    ) -> Guard:
        """The guard to show later; a producer whose earlier batch was refused has one already.

        It keeps the lowest sequence number seen: a partition that does not know the producer would
        take any number for the first, so a later batch must not slip in before a refused one.
        """
        of_producer = self._standing.setdefault(key, {})
        guard = of_producer.get(producer_epoch)
        if guard is None or guard.leader_epoch != leader_epoch:
            guard = of_producer[producer_epoch] = Guard(leader_epoch, sequence, now_ms)
        elif sequence < guard.lowest_sequence:
            guard.lowest_sequence = sequence
        return guard

    def stands(self, key: Key, producer_epoch: int, guard: Guard) -> bool:
        """False: a marker would not have found it, so nobody knows what came of its transaction."""
        return self._standing.get(key, {}).get(producer_epoch) is guard

    def drop(self, key: Key, producer_epoch: int) -> None:
        """The transaction is open in the log: from now on the log says what may be written."""
        of_producer = self._standing.get(key)
        if of_producer is not None:
            of_producer.pop(producer_epoch, None)
            if not of_producer:
                del self._standing[key]

    def end(self, key: Key, last_epoch: int) -> None:
        """A marker ended what the producer began with this epoch and all before it."""
        for epoch, guard in tuple(self._standing.get(key, {}).items()):
            if epoch <= last_epoch:
                guard.is_over = True
                self.drop(key, epoch)

    def drop_older(self, than_ms: int) -> None:
        """Take down what nobody came back for."""
        for key, of_producer in tuple(self._standing.items()):
            for epoch, guard in tuple(of_producer.items()):
                if guard.since_ms < than_ms:
                    self.drop(key, epoch)
