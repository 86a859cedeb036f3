"""Room for a ZooKeeper on a disk that brokers fill, such as the one disk of a developer's machine.

ZooKeeper ends when it cannot write its log. Then no topic can be deleted and no retention lowered,
which is what would make room. So its directory has a reserve, like each log directory of a broker.
A slice of it is less than brokers wait for before they take records again, and so stays for
ZooKeeper. Starting and watching the process is left to `up.py`.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from penstock.cli.tools.cluster.files import ServerFiles
from penstock.config.properties import read_properties
from penstock.errors import CommandError
from penstock.storage.directories.disk_room import DiskRoom

RESERVE_BYTES: Final = 8 << 20
# Of a process that was asked to end, by SIGINT or SIGTERM, as a JVM tells it.
_ASKED_TO_END: Final = frozenset({130, 143})


def open_room(server: ServerFiles) -> DiskRoom:
    """The room under its log, with a slice of the reserve free if the disk is full already."""
    settings = read_properties(server.properties)
    named = settings.get("dataLogDir", "").strip() or settings.get("dataDir", "").strip()
    directory = Path(named) if named else server.data
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"ZooKeeper's directory {directory} cannot be made: {error}") from error
    room = DiskRoom(directory, reserve_bytes=RESERVE_BYTES)
    room.set_up()
    if not room.watch():
        room.give()
    return room


def take_back(room: DiskRoom) -> None:
    """Make the reserve whole again, once there is room."""
    with suppress(FileNotFoundError):  # Somebody removed the directory, as ZooKeeper will tell.
        room.watch()


def give_more(room: DiskRoom, code: int) -> bool:
    """Give a slice to a ZooKeeper that ended for want of room; whether it may start again."""
    if code < 0 or code in _ASKED_TO_END:
        return False
    was_full = room.is_full
    if room.watch():
        return was_full
    return room.give()
