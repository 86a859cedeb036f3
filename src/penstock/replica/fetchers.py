"""The follower's side: tasks that copy partitions from the brokers that lead them.

One task per leading broker and fetcher number, one request under way in each, within an incremental
fetch session, so that a request names only what changed. What an answer does to a partition is in
`following.py`; this is about whom to ask, what for, and what to do when no answer comes.
"""

from collections.abc import Callable

from penstock.cluster.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.net.peers import Peers
from penstock.replica.table import PartitionTable


class ReplicaFetchers:
    """All fetcher tasks of a broker."""

    def __init__(
        self,
        *,
        broker_id: int,
        broker_epoch: Callable[[], int],
        peers: Peers,
        partitions: PartitionTable,
        config: Callable[[], BrokerConfig],
        now_ms: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._peers = peers
        self._partitions = partitions
        self._config = config
        self._now_ms = now_ms

    def take_image(self, image: ClusterImage) -> None:
        """After the table took it: follow what the image says, no more and no less."""

    async def close(self) -> None:
        """Stop all tasks; nothing is appended afterwards."""
