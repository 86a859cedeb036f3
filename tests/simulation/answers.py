"""Questions and answers between followers and leaders, judged where they meet.

I12  An answer that belongs to an earlier epoch, to another leader or to a partition that is gone
     changes nothing of the log.
I34  A session's fetches count in their order and once each, whatever the network repeats.
"""

from typing import Any

from tests.simulation.clock import Process
from tests.simulation.cluster import World

from penstock.broker.between_brokers import follower_of
from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.messages.fetch import PartitionData
from penstock.replica import fetcher
from penstock.replica.following import Position, Taken
from penstock.replica.partition import Partition


class Answers:
    def __init__(self, world: World) -> None:
        self._world = world
        self._history = world.history
        self._served: dict[tuple[Process, int], int] = {}  # The last epoch of each session.
        world.served_observers.append(self._note_served)
        self._take_answer = fetcher.take_answer
        fetcher.take_answer = self._watched  # type: ignore[assignment]

    # I12

    def _watched(
        self, partition: Partition, asked: Position, data: PartitionData, **named: Any
    ) -> Taken:
        is_past = not self._still_stands(partition, asked)
        before = _marks(partition) if is_past else None
        taken = self._take_answer(partition, asked, data, **named)
        if is_past and _marks(partition) != before:
            self._history.violate(
                f"I12 {partition} took an answer of {asked}: {before} -> {_marks(partition)}"
            )
        return taken

    def _still_stands(self, partition: Partition, asked: Position) -> bool:
        machine = self._world.machine(partition.around.broker_id)
        # A broker follows before it serves; what it has is not known here until then.
        is_hosted = (
            machine.broker is None or machine.broker.partitions.get(*partition.key) is partition
        )
        return (
            is_hosted
            and not partition.is_leader
            and (partition.leader, partition.leader_epoch) == (asked.leader, asked.leader_epoch)
        )

    # I34

    def _note_served(self, process: Process, request: Request, response: Response | None) -> None:
        if request.api_key != ApiKey.FETCH or response is None or request.session_epoch <= 0:
            return
        if follower_of(request) < 0 or response.error_code:
            return
        key = (process, request.session_id)
        last = self._served.get(key, 0)
        if request.session_epoch <= last:
            self._history.violate(
                f"I34 {process.name} served fetch {request.session_epoch} of session "
                f"{request.session_id} after fetch {last}"
            )
        self._served[key] = request.session_epoch


def _marks(partition: Partition) -> tuple[object, ...]:
    log = partition.log
    return log.log_start_offset, log.high_watermark, log.log_end_offset, log.epochs
