"""AlterReplicaLogDirs: replicas go from one directory of the broker to another."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.conftest import Served

from penstock.broker.handlers import alter_replica_log_dirs
from penstock.errors import ErrorCode, InvalidRequest
from penstock.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)

PATIENCE_S = 60.0


@pytest.fixture
def served(serve: Callable[..., Served], data_dir: Path) -> Served:
    """A broker with two directories; what there is lies in the first that was chosen."""
    return serve({"log.dirs": f"{data_dir / 'one'},{data_dir / 'two'}"})


def moves(*wanted: tuple[Path, str, list[int]]) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=str(path), topics=[AlterReplicaLogDirTopic(name=name, partitions=indexes)]
            )
            for path, name, indexes in wanted
        ]
    )


def codes(answer: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.topic_name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.results
        for partition in topic.partitions
    }


def elsewhere(served: Served, topic: str, index: int = 0) -> Path:
    """The directory that a replica is not in."""
    here = served.partition(topic, index).log.dir.parent
    (other,) = (path for path in served.broker.log_dirs.paths if path != here)
    return other


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_is_moved_with_all_it_has_and_goes_on(served: Served, version: int) -> None:
    served.create("t")
    served.append("t", 1, 2, 3)
    partition, target = served.partition("t"), elsewhere(served, "t")
    before, left = partition.log, partition.log.dir
    assert codes(served.ask(moves((target, "t", [0])), version)) == {("t", 0): ErrorCode.NONE}
    served.run(until(lambda: partition.log is not before))
    assert partition.log.dir == target / "t-0"
    assert (partition.log.log_end_offset, partition.high_watermark) == (3, 3)
    served.append("t", 4)
    assert partition.log.log_end_offset == 4
    assert not left.exists()


def test_each_partition_has_its_own_outcome_and_topics_are_told_once(served: Served) -> None:
    served.create("t", 2)
    here = served.partition("t", 0).log.dir.parent
    answer = served.ask(
        moves((here, "t", [0, 9]), (Path("/no/such/place"), "t", [1]), (here, "none", [0])), 2
    )
    assert [topic.topic_name for topic in answer.results] == ["t", "none"]
    assert codes(answer) == {
        ("t", 0): ErrorCode.NONE,  # It is there already, so nothing is to be done.
        ("t", 9): ErrorCode.REPLICA_NOT_AVAILABLE,
        ("t", 1): ErrorCode.LOG_DIR_NOT_FOUND,
        ("none", 0): ErrorCode.REPLICA_NOT_AVAILABLE,
    }
    assert served.partition("t", 0).log.dir.parent == here


def test_a_directory_whose_disk_failed_takes_nothing(served: Served) -> None:
    served.create("t")
    served.append("t", 1)
    before, target = served.partition("t").log, elsewhere(served, "t")
    (failing,) = (found for found in served.broker.log_dirs.dirs if found.path == target)
    failing.fail(OSError(5, "Input/output error"))
    answer = served.ask(moves((target, "t", [0])), 2)
    assert codes(answer) == {("t", 0): ErrorCode.KAFKA_STORAGE_ERROR}
    assert served.partition("t").log is before


def test_a_request_that_fails_as_a_whole_fails_for_each_partition() -> None:
    request = moves((Path("/a"), "t", [0, 1]), (Path("/b"), "u", [2]))
    answer = alter_replica_log_dirs.error_response(request, InvalidRequest("no"))
    assert codes(answer) == dict.fromkeys([("t", 0), ("t", 1), ("u", 2)], ErrorCode.INVALID_REQUEST)
