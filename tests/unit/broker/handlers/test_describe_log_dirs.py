"""DescribeLogDirs: every directory, what lies in it, and the room on its volume."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)


def ask(served: Any, version: int, topics: dict[str, list[int]] | None = None) -> Any:
    wanted = topics and [
        DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics.items()
    ]
    return served.ask(
        DescribeLogDirsRequest(topics=wanted if topics is not None else None), version
    )


def partitions(response: Any) -> set[tuple[str, int]]:
    return {
        (topic.name, partition.partition_index)
        for result in response.results
        for topic in result.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(6))
def test_every_version_tells_the_size_of_each_partition(
    served: Any, data_dir: Path, version: int
) -> None:
    served.create("t", partitions=2)
    served.append("t", 1, 2, 3)
    (result,) = ask(served, version).results
    assert (result.error_code, result.log_dir) == (ErrorCode.NONE, str(data_dir / "data"))
    (topic,) = result.topics
    sizes = {it.partition_index: it.partition_size for it in topic.partitions}
    assert sizes == {0: served.partition("t").log.size_bytes, 1: 0}
    assert sizes[0] > 0
    assert {(it.offset_lag, it.is_future_key) for it in topic.partitions} == {(0, False)}


def test_the_room_on_the_volume_is_told_from_version_four_on(served: Any) -> None:
    (old,) = ask(served, 3).results
    assert (old.total_bytes, old.usable_bytes) == (-1, -1)
    (new,) = ask(served, 4).results
    assert 0 <= new.usable_bytes <= new.total_bytes


def test_a_directory_that_takes_no_records_has_no_usable_bytes(served: Any) -> None:
    (found,) = served.broker.log_dirs.dirs
    found.room.is_full = True
    (result,) = ask(served, 4).results
    assert (result.error_code, result.usable_bytes) == (ErrorCode.NONE, 0)
    assert result.total_bytes > 0


def test_only_the_partitions_asked_for_are_told(served: Any) -> None:
    served.create("t", partitions=3)
    served.create("u")
    assert partitions(ask(served, 4, {"t": [0, 2], "absent": [0]})) == {("t", 0), ("t", 2)}
    assert partitions(ask(served, 4)) == {("t", 0), ("t", 1), ("t", 2), ("u", 0)}


def test_to_ask_for_no_topic_still_tells_the_directories(served: Any, data_dir: Path) -> None:
    served.create("t")
    (result,) = served.ask(DescribeLogDirsRequest(topics=[]), 4).results
    assert (result.log_dir, result.topics) == (str(data_dir / "data"), [])


def test_every_directory_is_told_even_an_empty_one(
    serve: Callable[..., Any], data_dir: Path
) -> None:
    paths = [str(data_dir / name) for name in ("one", "two")]
    served = serve({"log.dirs": ",".join(paths)})
    served.create("t")
    response = ask(served, 5)
    assert [result.log_dir for result in response.results] == paths
    assert partitions(response) == {("t", 0)}
    assert not any(result.is_cordoned for result in response.results)


def test_a_directory_that_is_gone_is_an_error_of_its_own(
    serve: Callable[..., Any], data_dir: Path
) -> None:
    served = serve({"log.dirs": f"{data_dir / 'one'},{data_dir / 'two'}"})
    (data_dir / "two").rename(data_dir / "elsewhere")
    codes = [result.error_code for result in ask(served, 4).results]
    (data_dir / "elsewhere").rename(data_dir / "two")
    assert codes == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]


def test_a_directory_whose_disk_failed_is_told_as_such(served: Any) -> None:
    served.create("t")
    served.broker.log_dirs.dirs[0].fail(OSError(5, "Input/output error"))
    (result,) = ask(served, 4).results
    assert (result.error_code, result.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
