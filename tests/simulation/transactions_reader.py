"""Readers of committed records, who leave out what the leader says was aborted, as clients do."""

from tests.simulation.clients import Client, Reader
from tests.simulation.history import Place
from tests.simulation.transactions_ledger import Ledger

from penstock.protocol.messages.fetch import PartitionData
from penstock.records.batch import LOG_OVERHEAD, BatchHeader, read_header, read_records
from penstock.records.control import ControlType, read_marker


class CommittedReader(Reader):
    """Reads one partition with isolation.level=read_committed."""

    isolation_level = 1

    def __init__(self, client: Client, place: Place) -> None:
        super().__init__(client, place)
        self._answer = PartitionData()
        self._stable: dict[int, int] = {}  # The highest last stable offset told, by leader epoch.

    def got(self, offset: int, value: bytes) -> None:
        """A committed record."""

    async def _fetch(self, epoch: int, leader: int) -> PartitionData:
        answer = self._answer = await super()._fetch(epoch, leader)
        if not answer.error_code:
            self._note_stable(epoch, answer)
        return answer

    def _note_stable(self, epoch: int, answer: PartitionData) -> None:
        """I23, of what one leader tells."""
        stable, before = answer.last_stable_offset, self._stable.get(epoch, 0)
        if stable < before or stable > answer.high_watermark:
            self._client.history.violate(
                f"I23 the last stable offset of {self._place} went from {before} to {stable}, "
                f"with a high watermark of {answer.high_watermark}, in leader epoch {epoch}"
            )
        self._stable[epoch] = max(before, stable)

    def _take(self, records: memoryview) -> bool:
        aborted = sorted(
            (one.first_offset, one.producer_id) for one in self._answer.aborted_transactions or ()
        )
        dead: set[int] = set()  # Producers in the middle of a transaction that was aborted.
        at, is_any = 0, False
        while at + LOG_OVERHEAD <= len(records):
            header = read_header(records, at)
            if at + header.size_bytes > len(records):
                break
            batch = records[at : at + header.size_bytes]
            at += header.size_bytes
            while aborted and aborted[0][0] <= header.last_offset:
                dead.add(aborted.pop(0)[1])
            if header.is_control:
                self._note_marker(batch, header, dead)
            elif not (header.is_transactional and header.producer_id in dead):
                self._pass_on(batch)
            self._check_stable(header)
            self.position = max(self.position, header.next_offset)
            is_any = True
        return is_any

    def _note_marker(self, batch: memoryview, header: BatchHeader, dead: set[int]) -> None:
        marker = read_marker(next(iter(read_records(batch, bytes_max=1 << 20))))
        if marker is not None and marker.type is ControlType.ABORT:
            dead.discard(header.producer_id)

    def _pass_on(self, batch: memoryview) -> None:
        for record in read_records(batch, bytes_max=1 << 20):
            if record.offset >= self.position and record.value is not None:
                self.got(record.offset, bytes(record.value))

    def _check_stable(self, header: BatchHeader) -> None:
        if header.next_offset > self._answer.last_stable_offset:
            self._client.history.violate(
                f"I23 {self._place}: a batch up to {header.last_offset} was handed out with a "
                f"last stable offset of {self._answer.last_stable_offset}"
            )


class Auditor(CommittedReader):
    """Reads what transactions wrote."""

    def __init__(self, client: Client, place: Place, ledger: Ledger) -> None:
        super().__init__(client, place)
        self._ledger = ledger

    async def run(self) -> None:
        while not self._client.is_closing:
            await self.poll()
            await self._client.nap(0.6)

    def got(self, offset: int, value: bytes) -> None:
        self._client.history.read(self._place, offset, value, self._client.name)
        self._ledger.read(self._place, offset, value, self._client.name)
