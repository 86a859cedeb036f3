"""kafka-dump-log: the lines are those of Apache Kafka's tool for the same bytes."""

import struct
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.tools.dump_log import dump_log
from penstock.cli.tools.dump_log.decoders import group_record, transaction_record
from penstock.errors import CommandError
from penstock.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from penstock.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from penstock.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue
from penstock.records.batch import build_batch, control_batch
from penstock.records.compression import Codec
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.records.record import Record
from penstock.storage.producers.producers import ProducerEntry, SequencedBatch
from penstock.storage.producers.snapshot import write_snapshot

NAME = "00000000000000000005"


def batch(offset: int, count: int = 2, **more: Any) -> bytes:
    records = [
        Record(offset + i, 1000 + i, b"k%d" % i, b"v%d" % i, (("h", b"1"), ("g", None)))
        for i in range(count)
    ]
    return bytes(build_batch(records, base_offset=offset, leader_epoch=3, **more))


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    log = tmp_path / f"{NAME}.log"
    marker = control_batch(
        EndTransactionMarker(ControlType.COMMIT, 2),
        base_offset=7,
        producer_id=4,
        producer_epoch=1,
        now_ms=1005,
        leader_epoch=3,
    )
    first = batch(5, producer_id=4, producer_epoch=1, base_sequence=9, is_transactional=True)
    log.write_bytes(first + bytes(marker) + batch(8, 1, codec=Codec.GZIP))
    return log


def dumped(capsys: pytest.CaptureFixture[str], *argv: object) -> list[str]:
    capsys.readouterr()
    assert dump_log.main([str(word) for word in argv]) == 0
    return capsys.readouterr().out.splitlines()


def test_batches_are_printed(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = dumped(capsys, "--files", segment)
    data = segment.read_bytes()
    (crc,) = struct.unpack_from(">I", data, 17)
    size = struct.unpack_from(">i", data, 8)[0] + 12
    assert lines[:2] == [f"Dumping {segment}", "Log starting offset: 5"]
    assert lines[2] == (
        "baseOffset: 5 lastOffset: 6 count: 2 baseSequence: 9 lastSequence: 10 producerId: 4 "
        "producerEpoch: 1 partitionLeaderEpoch: 3 isTransactional: true isControl: false "
        "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1001 "
        f"size: {size} magic: 2 compresscodec: none crc: {crc} isvalid: true"
    )
    assert "compresscodec: gzip" in lines[4]
    assert len(lines) == 5


def test_records_are_printed(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = dumped(capsys, "--files", segment, "--print-data-log")
    assert lines[3] == (
        "| offset: 5 CreateTime: 1000 keySize: 2 valueSize: 2 sequence: 9 headerKeys: [h,g] "
        "key: k0 payload: v0"
    )
    assert lines[6] == (
        "| offset: 7 CreateTime: 1005 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] "
        "endTxnMarker: COMMIT coordinatorEpoch: 2"
    )
    deep = dumped(capsys, "--files", segment, "--deep-iteration")
    assert deep[3].endswith("headerKeys: [h,g]")
    bare = dumped(capsys, "--files", segment, "--print-data-log", "--skip-record-metadata")
    assert bare[3] == "| key: k0 payload: v0"


def test_damage_is_shown(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(segment.read_bytes())
    data[-1] ^= 0xFF
    segment.write_bytes(bytes(data) + b"torn")
    lines = dumped(capsys, "--files", segment)
    assert lines[4].endswith("isvalid: false")
    assert lines[5] == f"Found 4 invalid bytes at the end of {segment.name}"


def test_a_gap_between_offsets_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / f"{NAME}.log"
    log.write_bytes(batch(5) + batch(9))
    lines = dumped(capsys, "--files", log, "--deep-iteration")
    assert lines[-2:] == [f"Non-consecutive offsets in :{log}", "  6 is followed by 9"]
    assert "Non-consecutive" not in "".join(dumped(capsys, "--files", log))


def test_indexes_are_printed_and_held_against_the_log(
    segment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size = struct.unpack_from(">i", segment.read_bytes(), 8)[0] + 12
    index, times = segment.with_suffix(".index"), segment.with_suffix(".timeindex")
    index.write_bytes(struct.pack(">iiii", 2, size, 3, size) + bytes(80))
    times.write_bytes(struct.pack(">qiqi", 1001, 1, 1004, 2) + bytes(60))
    lines = dumped(capsys, "--files", f"{index},{times}")
    assert lines == [
        f"Dumping {index}",
        f"offset: 7 position: {size}",
        f"offset: 8 position: {size}",
        f"Dumping {times}",
        "timestamp: 1001 offset: 6",
        "timestamp: 1004 offset: 7",
        f"Mismatches in :{index}",
        "  Index offset: 8, log offset: 7",
        f"Found timestamp mismatch in :{times}",
        "  Index timestamp: 1004, log timestamp: 1005",
    ]
    quiet = dumped(capsys, "--files", f"{index}", "--verify-index-only")
    assert quiet[1] == f"Mismatches in :{index}"


def test_the_size_of_an_index_is_its_sanity(
    segment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = segment.with_suffix(".index")
    index.write_bytes(bytes(16))
    lines = dumped(capsys, "--files", index, "--index-sanity-check")
    assert lines[1] == f"{index} passed sanity check."
    index.write_bytes(bytes(17))
    with pytest.raises(CommandError, match="not a multiple of 8"):
        dump_log.main(["--files", str(index), "--index-sanity-check"])


def test_aborted_transactions_and_snapshots_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aborted = tmp_path / f"{NAME}.txnindex"
    aborted.write_bytes(struct.pack(">hqqqq", 0, 20, 6, 7, 8))
    assert dumped(capsys, "--files", aborted)[1] == (
        "version: 0 producerId: 20 firstOffset: 6 lastOffset: 7 lastStableOffset: 8"
    )
    snapshot = tmp_path / f"{NAME}.snapshot"
    entry = ProducerEntry(22, 0, -1, 1794, 308, (SequencedBatch(4, 312, 4, 1794),))
    write_snapshot(snapshot, [entry])
    assert dumped(capsys, "--files", snapshot)[1] == (
        "producerId: 22 producerEpoch: 0 coordinatorEpoch: -1 "
        "currentTxnFirstOffset: OptionalLong[308] lastTimestamp: 1794 firstSequence: 0 "
        "lastSequence: 4 lastOffset: 312 offsetDelta: 4 timestamp: 1794"
    )


def test_files_of_no_segment_are_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "leader-epoch-checkpoint"
    other.touch()
    assert dumped(capsys, "--files", other)[1] == f"Ignoring unknown file {other}"
    with pytest.raises(CommandError, match="There is no file"):
        dump_log.main(["--files", str(tmp_path / f"{NAME}.log")])
    (tmp_path / "zork.log").touch()
    with pytest.raises(CommandError, match="not named after an offset"):
        dump_log.main(["--files", str(tmp_path / "zork.log")])


def test_a_committed_offset_is_told_as_json() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=0).to_bytes()
    value = OffsetCommitValue(offset=5, leader_epoch=0, metadata="", commit_timestamp=9)
    assert group_record(key, value.to_bytes(3)) == (
        '{"type":"1","data":{"group":"g","topic":"t","partition":0}}',
        '{"version":"3","data":{"offset":5,"leaderEpoch":0,"metadata":"","commitTimestamp":9}}',
    )
    assert group_record(key, None)[1] == "<DELETE>"


def test_a_group_is_told_with_what_its_members_said() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"], user_data=None).to_bytes(0)
    assignment = ConsumerProtocolAssignment(user_data=None).to_bytes(0)
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        session_timeout=1,
        subscription=subscription,
        assignment=assignment,
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m", members=[member]
    )
    _, text = group_record(GroupMetadataKey(group="g").to_bytes(), value.to_bytes(1))
    assert text is not None
    assert '"subscription":{"topics":["t"],"userData":null}' in text
    assert '"assignment":{"assignedPartitions":[],"userData":null}' in text
    assert '"rebalanceTimeout":-1' in text


def test_a_transaction_is_told_without_what_says_nothing() -> None:
    key = TransactionLogKey(transactional_id="x").to_bytes()
    value = TransactionLogValue(producer_id=14, previous_producer_id=14, producer_epoch=0)
    _, text = transaction_record(key, value.to_bytes(1))
    assert text is not None
    assert text.startswith('{"version":"1","data":{"producerId":14,"previousProducerId":14,')
    assert "nextProducerId" not in text


def test_records_that_make_no_sense_are_told() -> None:
    assert group_record(b"\x00\x63rest", b"")[0] == "Unknown record type 99 at offset, skipping..."
    assert "Error decoding" in (group_record(b"\x00\x01", b"")[0] or "")
    assert group_record(None, b"v") == (None, "v")
