"""Room for a ZooKeeper: kept while there is some, given when it ends for want of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.disk import free_bytes, leave_no_byte, small_disk

from penstock.cli.tools.cluster.files import ServerFiles
from penstock.cli.tools.cluster.zookeeper_room import give_more, open_room, take_back

DISK_BYTES = 48_000_000
SIGTERM_OF_A_JVM = 143


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", size_bytes=DISK_BYTES) as directory:
        yield directory


def server(directory: Path, **settings: str) -> ServerFiles:
    properties = directory / "zookeeper.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return ServerFiles(
        number=1,
        port=2181,
        properties=properties,
        data=directory / "data",
        log=directory / "zookeeper.out",
    )


def test_the_reserve_lies_where_zookeeper_writes_its_log(tmp_path: Path) -> None:
    log, data = tmp_path / "log", tmp_path / "data"
    assert open_room(server(tmp_path)).path == data
    assert open_room(server(tmp_path, dataDir=str(data))).path == data
    assert open_room(server(tmp_path, dataDir=str(data), dataLogDir=str(log))).path == log


def test_what_ended_on_a_disk_with_room_gets_none(tmp_path: Path) -> None:
    room = open_room(server(tmp_path))
    held = room.reserve_bytes
    assert held > 0
    assert not give_more(room, 1)
    assert room.reserve_bytes == held


def test_each_end_on_a_full_disk_gets_a_slice_until_none_is_left(disk: Path) -> None:
    room = open_room(server(disk))
    held = room.reserve_bytes
    turns = 0
    leave_no_byte(disk)
    while give_more(room, 0):
        turns += 1
        assert free_bytes(disk) > 0
        leave_no_byte(disk)
    assert turns > 4
    assert (held, room.reserve_bytes) == (held, 0)


@pytest.mark.parametrize("code", [-9, -15, SIGTERM_OF_A_JVM])
def test_what_was_asked_to_end_gets_nothing(disk: Path, code: int) -> None:
    room = open_room(server(disk))
    leave_no_byte(disk)
    assert not give_more(room, code)


def test_a_slice_is_less_than_what_makes_a_broker_take_records(disk: Path) -> None:
    broker = open_room(server(disk))  # A broker keeps room in the same way.
    room = open_room(server(disk, dataDir=str(disk / "zookeeper")))
    leave_no_byte(disk)
    assert not broker.watch()
    assert give_more(room, 0)
    assert not broker.watch()


def test_a_full_disk_has_a_slice_free_before_the_first_start(disk: Path) -> None:
    held = open_room(server(disk)).reserve_bytes
    leave_no_byte(disk)
    again = open_room(server(disk))
    assert 0 < again.reserve_bytes < held
    assert free_bytes(disk) > 0


def test_what_was_given_is_taken_back_when_there_is_room(disk: Path) -> None:
    room = open_room(server(disk))
    held = room.reserve_bytes
    ballast = leave_no_byte(disk)
    assert give_more(room, 0)
    ballast.unlink()
    take_back(room)
    assert room.reserve_bytes == held


def test_room_that_came_meanwhile_is_enough_to_start_again(disk: Path) -> None:
    room = open_room(server(disk))
    ballast = leave_no_byte(disk)
    take_back(room)
    ballast.unlink()
    assert give_more(room, 0)


def test_a_directory_that_somebody_removed_is_left_to_zookeeper_to_tell(tmp_path: Path) -> None:
    room = open_room(server(tmp_path))
    (room.path / "penstock-reserve").unlink()
    room.path.rmdir()
    take_back(room)
