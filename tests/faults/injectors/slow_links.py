"""Brokers that are slow to hear each other's questions about transactions, and nothing else.

A marker needs a while from the coordinator to a leader, and the leader's question to the
coordinator needs a longer one. So a producer that begins its next transaction at once is in front
of a leader before the marker of the last one is, and the marker comes while the question for the
next one is on its way. A busy machine does the same now and then; here it happens every time.
"""

import time

from tests.faults.deployment import BrokerNode, Deployment
from tests.support.processes import HOST, free_port
from tests.support.slow_link import SlowLink

from penstock.protocol.apis import ApiKey

DELAYS_S: dict[int, float] = {ApiKey.WRITE_TXN_MARKERS: 0.05, ApiKey.ADD_PARTITIONS_TO_TXN: 0.25}


def hold(api_key: int) -> None:
    time.sleep(DELAYS_S.get(api_key, 0.0))  # The delay is the fault.


class SlowLinksDeployment(Deployment):
    """Clients reach brokers directly, brokers reach each other through slow links."""

    def prepare(self, node: BrokerNode) -> None:
        port = free_port()
        link = self.stack.enter_context(SlowLink(port, hold))
        client = f"CLIENTS://{node.address}"
        node.settings |= {
            "listeners": f"{client},BROKERS://{HOST}:{port}",
            "advertised.listeners": f"{client},BROKERS://{HOST}:{link.port}",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
        }
