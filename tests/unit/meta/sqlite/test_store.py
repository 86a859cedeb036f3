"""The file behind the store of a lone broker: opened, locked, upgraded, damaged, full."""

# ruff: noqa: ASYNC221, ASYNC240  (nothing else runs on the loop of a test that could be held up)

import asyncio
import random
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.support.disk import leave_no_byte, small_disk

from penstock.errors import ConfigError
from penstock.meta.sqlite import tree as sqlite_tree
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.sqlite.tree import SqliteTree
from penstock.meta.store import (
    Create,
    MetaError,
    MultiFailed,
    OutcomeUnknown,
    Set,
    StoreUnavailable,
    WatchKind,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metadata.db"


async def refusal(path: Path) -> str:
    """The sentence with which the file is refused."""
    with pytest.raises(ConfigError) as caught:
        await SqliteStore.open(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


async def test_what_was_acknowledged_is_there_after_a_crash(path: Path) -> None:
    """The process ends without closing anything, right after the answer."""
    script = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from penstock.meta.sqlite.store import SqliteStore\n"
        "from penstock.meta.store import Create, Set\n"
        "async def main():\n"
        "    store = await SqliteStore.open(Path(sys.argv[1]))\n"
        "    await store.multi([Create('/a', b'kept'), Create('/e', ephemeral=True)])\n"
        "    await store.multi([Set('/a', b'kept too')])\n"
        "    os._exit(7)\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert process.returncode == 7
    store = await SqliteStore.open(path)
    data, stat = await store.get("/a")
    assert (data, stat.version) == (b"kept too", 1)
    assert await store.children("/") == ["a"]
    await store.close()


async def test_every_commit_reaches_the_disk(path: Path) -> None:
    tree = SqliteTree(path)
    assert tree._pragma("synchronous") == 2  # FULL
    assert tree._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    tree.close()


async def test_a_second_process_is_told_that_the_file_is_in_use(path: Path) -> None:
    store = await SqliteStore.open(path)
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from penstock.errors import ConfigError\n"
        "from penstock.meta.sqlite.store import SqliteStore\n"
        "try:\n"
        "    asyncio.run(SqliteStore.open(Path(sys.argv[1])))\n"
        "except ConfigError as error:\n"
        "    print(error)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True
    )
    assert process.stdout == (
        f"The metadata file {path} is in use by another process. "
        "Stop that broker first, or give this one another log.dirs.\n"
    )
    await store.multi([Create("/still-ours")])
    await store.close()


async def test_the_same_process_cannot_open_the_file_twice_either(path: Path) -> None:
    store = await SqliteStore.open(path)
    assert "in use" in await refusal(path)
    await store.multi([Create("/still-ours")])
    await store.close()
    again = await SqliteStore.open(path)
    assert await again.children("/") == ["still-ours"]
    await again.close()


async def test_the_file_stays_open_until_the_last_session_ends(path: Path) -> None:
    first = await SqliteStore.open(path)
    second = await first.open_session()
    await first.close()
    await second.multi([Create("/a")])
    assert "in use" in await refusal(path)
    await second.close()
    await (await SqliteStore.open(path)).close()


async def test_closing_leaves_one_file_and_nothing_beside_it(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.multi([Create("/a")])
    await store.close()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"x" * 99]
)
async def test_a_file_of_something_else_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "is damaged" in await refusal(path)
    assert path.read_bytes() == content


async def test_a_truncated_file_is_refused(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.multi([Create(f"/{n}", b"x" * 3000) for n in range(20)])
    await store.close()
    path.write_bytes(path.read_bytes()[:8192])
    with pytest.raises(ConfigError, match="is damaged") as caught:
        store = await SqliteStore.open(path)
        try:
            await store.multi_get([f"/{n}" for n in range(20)])
        finally:
            await store.close()
    assert str(path) in str(caught.value)


async def test_damage_anywhere_gives_a_sentence_and_never_a_traceback(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.multi([Create("/p"), *(Create(f"/p/{n}", b"x" * 100) for n in range(300))])
    await store.close()
    good, rng = path.read_bytes(), random.Random(7)
    refused = 0
    for _ in range(30):
        bad = bytearray(good)
        at = rng.randrange(len(bad))
        bad[at : at + 64] = rng.randbytes(len(bad[at : at + 64]))
        path.write_bytes(bad)
        refused += await read_all_or_refuse(path)
        for left in path.parent.iterdir():
            left.unlink()
    assert refused > 2  # Not every byte matters, but the test must have hit some that do.


async def read_all_or_refuse(path: Path) -> bool:
    try:
        store = await SqliteStore.open(path)
    except ConfigError:
        return True
    try:
        for name in await store.children("/p"):
            await store.get(f"/p/{name}")
    except (ConfigError, MetaError):
        return True
    finally:
        await store.close()
    return False


async def test_a_database_of_another_program_is_refused_untouched(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mails (body TEXT)")
    other.close()
    before = path.read_bytes()
    assert "of another program" in await refusal(path)
    assert path.read_bytes() == before


async def test_a_file_of_a_newer_version_is_refused_untouched(path: Path) -> None:
    await (await SqliteStore.open(path)).close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 9")
    other.close()
    sentence = await refusal(path)
    assert "written by a newer Penstock (layout 9, this one knows up to 1)" in sentence


async def test_an_older_layout_is_brought_up_to_date_with_its_nodes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(path)
    await store.multi([Create("/a", b"kept")])
    await store.close()
    newer = (*sqlite_tree._LAYOUTS, "ALTER TABLE nodes ADD COLUMN colour TEXT DEFAULT 'red'")
    monkeypatch.setattr(sqlite_tree, "_LAYOUTS", newer)
    for _ in range(2):  # The second time there is nothing left to do.
        store = await SqliteStore.open(path)
        assert (await store.get("/a"))[0] == b"kept"
        await store.close()
    with sqlite3.connect(path) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (2,)
        assert other.execute("SELECT DISTINCT colour FROM nodes").fetchall() == [("red",)]
    other.close()


async def test_an_upgrade_that_fails_leaves_the_old_layout(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(path)
    await store.multi([Create("/a", b"kept")])
    await store.close()
    old = sqlite_tree._LAYOUTS
    monkeypatch.setattr(sqlite_tree, "_LAYOUTS", (*old, "DROP TABLE nodes; DROP TABLE nowhere"))
    with pytest.raises(StoreUnavailable):
        await SqliteStore.open(path)
    monkeypatch.setattr(sqlite_tree, "_LAYOUTS", old)
    store = await SqliteStore.open(path)
    assert (await store.get("/a"))[0] == b"kept"
    await store.close()


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    assert "Check that its directory exists" in await refusal(tmp_path / "none" / "metadata.db")


async def test_a_directory_in_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir()
    assert "cannot be opened" in await refusal(path)


async def test_a_full_disk_refuses_writes_keeps_reads_and_heals(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.multi([Create("/a", b"kept")])
    database = store._file.tree._db
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreUnavailable, match="full"):
        await store.multi([Set("/a", b"x" * 100_000)])
    assert (await store.get("/a"))[0] == b"kept"
    database.execute("PRAGMA max_page_count = 1000000")
    await store.multi([Set("/a", b"x" * 100_000, 0)])
    await store.close()


async def test_a_full_disk_is_asked_for_room_and_the_write_is_made_once(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", size_bytes=4 << 20) as disk:
        ballast, asked = disk / "ballast", []

        def make_room() -> bool:
            asked.append(True)
            ballast.unlink()
            return True

        store = await SqliteStore.open(disk / "metadata.db", make_room=make_room)
        await store.multi([Create("/a", b"kept")])
        leave_no_byte(disk)
        await store.multi([Set("/a", b"x" * 100_000, 0)])
        assert asked == [True]
        data, stat = await store.get("/a")
        assert (len(data), stat.version) == (100_000, 1)
        await store.close()


async def test_a_file_that_a_killed_process_left_opens_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", size_bytes=4 << 20) as disk:
        ballast, path = disk / "ballast", disk / "metadata.db"
        program = (
            "import asyncio, os, pathlib, sys\n"
            "from penstock.meta.sqlite.store import SqliteStore\n"
            "from penstock.meta.store import Create\n"
            "async def main():\n"
            "    store = await SqliteStore.open(pathlib.Path(sys.argv[1]))\n"
            "    await store.multi([Create('/a', b'kept'), Create('/b', b'', ephemeral=True)])\n"
            "    os._exit(9)\n"
            "asyncio.run(main())\n"
        )
        assert subprocess.run([sys.executable, "-c", program, str(path)]).returncode == 9
        leave_no_byte(disk)

        def make_room() -> bool:
            ballast.unlink(missing_ok=True)
            return True

        store = await SqliteStore.open(path, make_room=make_room)
        assert (await store.get("/a"))[0] == b"kept"
        assert await store.multi_get(["/b"]) == [None]
        await store.close()


class FailingCommits:
    """A connection whose COMMIT fails after the fact, as a failed fsync does."""

    def __init__(self, real: sqlite3.Connection) -> None:
        self._real = real
        self.is_failing = True

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def execute(self, sql: str, *arguments: object) -> sqlite3.Cursor:
        cursor = self._real.execute(sql, *arguments)
        if sql == "COMMIT" and self.is_failing:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            raise error
        return cursor


async def test_an_input_output_error_at_the_commit_leaves_the_outcome_open(path: Path) -> None:
    store = await SqliteStore.open(path)
    connection = FailingCommits(store._file.tree._db)
    store._file.tree._db = connection
    with pytest.raises(OutcomeUnknown):
        await store.multi([Create("/a")])
    connection.is_failing = False
    assert await store.children("/") == ["a"]
    await store.close()


async def test_a_caller_that_gives_up_does_not_stop_its_write_or_its_watchers(path: Path) -> None:
    store = await SqliteStore.open(path)
    watch = await store.watch_once("/a", WatchKind.DATA)
    release = threading.Event()
    store._file.thread.submit(release.wait)  # The disk is busy, so the write has to queue.
    writing = asyncio.create_task(store.multi([Create("/b"), Create("/a")]))
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    release.set()
    await asyncio.wait_for(watch, 60)
    assert await store.children("/") == ["a", "b"]
    await store.close()


async def test_the_loop_goes_on_while_the_disk_works(path: Path) -> None:
    store = await SqliteStore.open(path)
    writing = asyncio.create_task(
        store.multi([Create("/p"), *(Create(f"/p/{n}", b"x" * 500) for n in range(3000))])
    )
    turns = 0
    while not writing.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 20
    await store.close()


async def test_writers_in_a_crowd_each_get_their_own_answer(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.multi([Create("/a")])
    outcomes = await asyncio.gather(
        *(store.multi([Set("/a", b"%d" % n, n // 2)]) for n in range(20)), return_exceptions=True
    )
    assert [isinstance(outcome, MultiFailed) for outcome in outcomes] == [False, True] * 10
    await store.close()
