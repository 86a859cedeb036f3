"""How far this broker reaches for transactions: to the leaders and coordinators of the cluster."""

from collections.abc import Callable

from penstock.broker.remote_coordinator import ClusterVerifier
from penstock.broker.remote_markers import ClusterMarkers
from penstock.cluster.image import ClusterImage
from penstock.net.peers import Peers
from penstock.transactions.coordinator import TransactionCoordinator
from penstock.transactions.markers import LocalMarkers


class ClusterReach:
    """See Reach in exactly_once.py."""

    def __init__(self, *, broker_id: int, image: Callable[[], ClusterImage], peers: Peers) -> None:
        self._broker_id = broker_id
        self._image = image
        self._peers = peers

    def markers(self, local: LocalMarkers) -> ClusterMarkers:
        return ClusterMarkers(
            local, broker_id=self._broker_id, image=self._image, peers=self._peers
        )

    def verifier(self, local: TransactionCoordinator) -> ClusterVerifier:
        return ClusterVerifier(
            local, broker_id=self._broker_id, image=self._image, peers=self._peers
        )
