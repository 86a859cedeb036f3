"""What every metadata store promises, whoever keeps the nodes. Runs against each of them."""

import asyncio
from typing import Protocol

import pytest

from penstock.meta.store import (
    PERSISTENT,
    BadVersion,
    Change,
    Check,
    Create,
    Delete,
    MetaStore,
    MultiFailed,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    OpFailed,
    Result,
    SessionLost,
    SessionState,
    Set,
    Stat,
    WatchEvent,
    WatchKind,
)


class Stores(Protocol):
    async def open(self) -> MetaStore:
        """A first session, or a further one beside those that are open."""
        ...


async def write(store: MetaStore, *ops: Op) -> list[Result]:
    return await store.multi(ops)


async def refused(store: MetaStore, *ops: Op) -> MultiFailed:
    with pytest.raises(MultiFailed) as caught:
        await store.multi(ops)
    return caught.value


async def stat_of(store: MetaStore, path: str) -> Stat:
    _, stat = await store.get(path)
    return stat


# Reading


async def test_the_root_is_always_there(stores: Stores) -> None:
    store = await stores.open()
    assert await store.children("/") == []


async def test_reading_a_missing_node_says_so(stores: Stores) -> None:
    store = await stores.open()
    with pytest.raises(NoNode) as caught:
        await store.get("/a")
    assert caught.value.path == "/a"


async def test_children_of_a_missing_node_are_refused(stores: Stores) -> None:
    store = await stores.open()
    with pytest.raises(NoNode):
        await store.children("/a")


async def test_children_are_names_in_order_without_grandchildren(stores: Stores) -> None:
    store = await stores.open()
    paths = ("/p", "/p/b", "/p/a", "/p/a/deep", "/p-beside", "/p/a0")
    await write(store, *map(Create, paths))
    assert await store.children("/p") == ["a", "a0", "b"]


async def test_a_node_without_children_has_an_empty_list(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/p"))
    assert await store.children("/p") == []


async def test_multi_get_keeps_the_order_and_marks_what_is_missing(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a", b"1"), Create("/b", b"2"))
    found = await store.multi_get(["/b", "/none", "/a", "/b"])
    assert [node and node[0] for node in found] == [b"2", None, b"1", b"2"]


async def test_multi_get_of_nothing_is_nothing(stores: Stores) -> None:
    store = await stores.open()
    assert await store.multi_get([]) == []


async def test_multi_get_agrees_with_get(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a", b"1"))
    await write(store, Set("/a", b"2"))
    assert await store.multi_get(["/a"]) == [await store.get("/a")]


@pytest.mark.parametrize("path", ["", "a", "a/b", "/a/", "//a", "/a//b", "/.", "/a/..", "/a\0b"])
async def test_a_path_that_is_none_is_a_bug_of_the_caller(stores: Stores, path: str) -> None:
    store = await stores.open()
    with pytest.raises(ValueError, match="not a node path"):
        await store.get(path)
    with pytest.raises(ValueError, match="not a node path"):
        await store.multi([Create(path)])


# Creating


async def test_a_created_node_has_its_data_and_version_zero(stores: Stores) -> None:
    store = await stores.open()
    assert await write(store, Create("/a", b"data")) == ["/a"]
    data, stat = await store.get("/a")
    assert (data, stat.version, stat.owner) == (b"data", 0, PERSISTENT)
    assert stat.czxid == stat.mzxid > 0


async def test_any_bytes_come_back_as_they_were(stores: Stores) -> None:
    store = await stores.open()
    data = bytes(range(256)) * 100
    await write(store, Create("/a", data), Create("/empty"))
    assert (await store.get("/a"))[0] == data
    assert (await store.get("/empty"))[0] == b""


async def test_names_may_hold_any_letter(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/ä ö'\"%_*?"), Create("/ä ö'\"%_*?/<default>", b"x"))
    assert await store.children("/ä ö'\"%_*?") == ["<default>"]


async def test_creating_twice_is_refused(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a", b"first"))
    failure = await refused(store, Create("/a", b"second"))
    assert isinstance(failure.reason, NodeExists)
    assert (await store.get("/a"))[0] == b"first"


async def test_a_parent_must_be_there(stores: Stores) -> None:
    store = await stores.open()
    failure = await refused(store, Create("/a/b"))
    assert isinstance(failure.reason, NoNode)


async def test_names_that_begin_alike_are_different_nodes(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"), Create("/ab"), Create("/a/b"))
    await write(store, Delete("/ab"))
    assert await store.children("/") == ["a"]
    assert await store.children("/a") == ["b"]


async def test_a_node_made_again_begins_at_version_zero_with_a_later_birth(
    stores: Stores,
) -> None:
    store = await stores.open()
    await write(store, Create("/a"))
    await write(store, Set("/a", b"x"))
    first = await stat_of(store, "/a")
    await write(store, Delete("/a"), Create("/a"))
    again = await stat_of(store, "/a")
    assert again.version == 0
    assert again.czxid > first.mzxid


# Writing


async def test_each_write_raises_the_version_by_one(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"))
    for version in (1, 2, 3):
        (stat,) = await write(store, Set("/a", b"%d" % version, version - 1))
        assert isinstance(stat, Stat) and stat.version == version
        assert await store.get("/a") == (b"%d" % version, stat)


async def test_a_write_keeps_the_birth_and_moves_the_last_change(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"))
    born = await stat_of(store, "/a")
    await write(store, Create("/other"))
    (stat,) = await write(store, Set("/a", b"x"))
    assert isinstance(stat, Stat)
    assert stat.czxid == born.czxid
    assert stat.mzxid > born.mzxid + 1


async def test_a_write_at_another_version_is_refused(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a", b"kept"))
    for version in (1, 7):
        failure = await refused(store, Set("/a", b"lost", version))
        assert isinstance(failure.reason, BadVersion)
    assert (await store.get("/a"))[0] == b"kept"


async def test_a_write_may_ask_for_no_version(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"), Set("/a", b"1"), Set("/a", b"2"))
    assert (await store.get("/a"))[0] == b"2"
    assert (await stat_of(store, "/a")).version == 2


async def test_writing_a_missing_node_is_refused(stores: Stores) -> None:
    store = await stores.open()
    assert isinstance((await refused(store, Set("/a", b"x"))).reason, NoNode)
    assert isinstance((await refused(store, Set("/a", b"x", 0))).reason, NoNode)


async def test_of_two_writers_at_one_version_the_second_loses(stores: Stores) -> None:
    first, second = await stores.open(), await stores.open()
    await write(first, Create("/a"))
    outcomes = await asyncio.gather(
        first.multi([Set("/a", b"1", 0)]),
        second.multi([Set("/a", b"2", 0)]),
        return_exceptions=True,
    )
    losers = [o for o in outcomes if isinstance(o, MultiFailed)]
    assert len(losers) == 1 and isinstance(losers[0].reason, BadVersion)
    assert (await stat_of(first, "/a")).version == 1


# Deleting


async def test_a_deleted_node_is_gone(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"), Create("/a/b"))
    assert await write(store, Delete("/a/b")) == [None]
    assert await store.children("/a") == []
    assert await store.multi_get(["/a/b"]) == [None]


async def test_deleting_a_missing_node_is_refused(stores: Stores) -> None:
    store = await stores.open()
    assert isinstance((await refused(store, Delete("/a"))).reason, NoNode)


async def test_deleting_at_another_version_is_refused(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"), Set("/a", b""))
    assert isinstance((await refused(store, Delete("/a", 0))).reason, BadVersion)
    await write(store, Delete("/a", 1))
    assert await store.children("/") == []


async def test_a_node_with_children_cannot_be_deleted(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"), Create("/a/b"))
    assert isinstance((await refused(store, Delete("/a"))).reason, NotEmpty)


async def test_a_subtree_goes_in_one_step_children_first(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"), Create("/a/b"), Create("/a/b/c"))
    await write(store, Delete("/a/b/c"), Delete("/a/b"), Delete("/a"))
    assert await store.children("/") == []


async def test_the_root_stays(stores: Stores) -> None:
    store = await stores.open()
    with pytest.raises(ValueError, match="root"):
        await store.multi([Delete("/")])


# Checking, and all or nothing


async def test_a_check_changes_nothing(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a", b"x"))
    before = await store.get("/a")
    assert await write(store, Check("/a", 0)) == [None]
    assert await store.get("/a") == before


async def test_a_check_fails_at_another_version(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"))
    assert isinstance((await refused(store, Check("/a", 1))).reason, BadVersion)


async def test_a_check_fails_without_a_node(stores: Stores) -> None:
    store = await stores.open()
    assert isinstance((await refused(store, Check("/a", 0))).reason, NoNode)


async def test_a_failed_check_undoes_all_before_it(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a", b"old"), Create("/gone"))
    ops = (Set("/a", b"new"), Create("/b"), Delete("/gone"), Check("/a", 0))
    failure = await refused(store, *ops)
    assert failure.index == 3
    assert failure.op == ops[3]
    assert await store.children("/") == ["a", "gone"]
    assert (await store.get("/a"))[0] == b"old"
    assert (await stat_of(store, "/a")).version == 0


async def test_the_first_failure_is_the_one_named(stores: Stores) -> None:
    store = await stores.open()
    failure = await refused(store, Create("/a"), Set("/none", b""), Create("/a"))
    assert (failure.index, failure.reason.path) == (1, "/none")
    assert isinstance(failure.reason, NoNode)


async def test_each_operation_sees_those_before_it(stores: Stores) -> None:
    store = await stores.open()
    results = await write(
        store,
        Create("/a"),
        Create("/a/b", b"1"),
        Set("/a/b", b"2", 0),
        Check("/a/b", 1),
        Delete("/a/b", 1),
        Create("/a/b", b"3"),
    )
    assert results[:2] == ["/a", "/a/b"] and results[3:] == [None, None, "/a/b"]
    data, stat = await store.get("/a/b")
    assert (data, stat.version) == (b"3", 0)


async def test_one_multi_is_one_transaction(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"), Create("/b"))
    await write(store, Set("/a", b""), Set("/b", b""))
    a, b = await stat_of(store, "/a"), await stat_of(store, "/b")
    assert a == b
    assert a.mzxid > a.czxid


async def test_an_empty_multi_does_nothing(stores: Stores) -> None:
    store = await stores.open()
    assert await store.multi([]) == []


async def test_a_set_in_the_multi_that_creates_tells_the_birth(stores: Stores) -> None:
    """How a broker learns its epoch: a Create does not answer with a stat."""
    store = await stores.open()
    _, stat = await write(store, Create("/a", b"x", ephemeral=True), Set("/a", b"x", 0))
    assert stat == await stat_of(store, "/a")


async def test_a_refused_multi_uses_up_no_sequence_number(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/q"))
    await refused(store, Create("/q/n-", sequential=True), Check("/q", 5))
    (path,) = await write(store, Create("/q/n-", sequential=True))
    again = await write(store, Create("/q/n-", sequential=True))
    assert [path] < again
    assert await store.children("/q") == [str(path)[3:], str(again[0])[3:]]


async def test_a_thousand_nodes_go_into_one_multi(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/p"), *(Create(f"/p/{n}", b"x" * 200) for n in range(1000)))
    assert len(await store.children("/p")) == 1000
    failure = await refused(store, *(Delete(f"/p/{n}") for n in range(1001)))
    assert failure.index == 1000
    assert len(await store.children("/p")) == 1000


async def test_transactions_are_numbered_in_the_order_they_were_asked_for(
    stores: Stores,
) -> None:
    store = await stores.open()
    await asyncio.gather(*(store.multi([Create(f"/n{n}")]) for n in range(20)))
    births = [(await stat_of(store, f"/n{n}")).czxid for n in range(20)]
    assert births == sorted(set(births))


# Sequential nodes


async def test_a_sequential_node_gets_ten_digits(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/q"))
    (path,) = await write(store, Create("/q/n-", b"x", sequential=True))
    assert isinstance(path, str)
    assert path.startswith("/q/n-") and len(path) == len("/q/n-") + 10 and path[-10:].isdigit()
    assert (await store.get(path))[0] == b"x"


async def test_sequence_numbers_grow_even_when_the_last_node_is_gone(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/q"))
    paths: list[str] = []
    for _ in range(5):
        (path,) = await write(store, Create("/q/n-", sequential=True))
        paths.append(str(path))
        await write(store, Delete(str(path)))
    assert paths == sorted(set(paths))


async def test_two_sequential_nodes_in_one_multi_differ(stores: Stores) -> None:
    store = await stores.open()
    sequential = Create("/q/n-", sequential=True)
    _, first, second = await write(store, Create("/q"), sequential, sequential)
    assert str(first) < str(second)


async def test_a_sequential_node_may_be_ephemeral(stores: Stores) -> None:
    store = await stores.open()
    (path,) = await write(store, Create("/n-", ephemeral=True, sequential=True))
    assert (await stat_of(store, str(path))).owner == store.session_id


# Sessions and ephemeral nodes


async def test_sessions_have_different_ids(stores: Stores) -> None:
    first, second = await stores.open(), await stores.open()
    assert PERSISTENT not in (first.session_id, second.session_id)
    assert first.session_id != second.session_id


async def test_an_ephemeral_node_names_its_session(stores: Stores) -> None:
    first, second = await stores.open(), await stores.open()
    await write(first, Create("/a", ephemeral=True))
    assert (await stat_of(second, "/a")).owner == first.session_id


async def test_an_ephemeral_node_goes_with_its_session(stores: Stores) -> None:
    first, second = await stores.open(), await stores.open()
    await write(first, Create("/mine", ephemeral=True), Create("/stays"))
    await write(second, Create("/yours", ephemeral=True))
    await first.close()
    assert await second.children("/") == ["stays", "yours"]


async def test_an_ephemeral_node_does_not_survive_the_last_session(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/mine", ephemeral=True), Create("/stays", b"x"))
    kept = await store.get("/stays")
    await store.close()
    again = await stores.open()
    assert await again.children("/") == ["stays"]
    assert await again.get("/stays") == kept


async def test_an_ephemeral_node_has_no_children(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a", ephemeral=True))
    assert isinstance((await refused(store, Create("/a/b"))).reason, NoChildrenForEphemerals)


async def test_writing_anothers_ephemeral_node_does_not_change_its_owner(
    stores: Stores,
) -> None:
    first, second = await stores.open(), await stores.open()
    await write(first, Create("/a", ephemeral=True))
    await write(second, Set("/a", b"x"))
    assert (await stat_of(first, "/a")).owner == first.session_id


async def test_another_session_may_delete_an_ephemeral_node(stores: Stores) -> None:
    first, second = await stores.open(), await stores.open()
    await write(first, Create("/a", ephemeral=True))
    await write(second, Delete("/a"), Create("/a", b"taken over", ephemeral=True))
    await first.close()
    assert (await second.get("/a"))[0] == b"taken over"


async def test_a_closed_session_can_do_nothing_more(stores: Stores) -> None:
    store = await stores.open()
    await stores.open()
    assert store.session_state is SessionState.CONNECTED
    await store.close()
    assert store.session_state is SessionState.LOST
    for attempt in (
        store.get("/"),
        store.children("/"),
        store.multi_get(["/"]),
        store.multi([Create("/a")]),
        store.watch_once("/", WatchKind.DATA),
    ):
        with pytest.raises(SessionLost):
            await attempt
    await store.close()  # Twice is once.


async def test_the_end_of_a_session_is_told_once(stores: Stores) -> None:
    store = await stores.open()
    told: list[SessionState] = []
    unwanted: list[SessionState] = []
    store.on_session(told.append)
    stop = store.on_session(unwanted.append)
    stop()
    await store.close()
    await store.close()
    assert told == [SessionState.LOST]
    assert unwanted == []


async def test_transaction_numbers_go_on_after_a_restart(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"))
    before = await stat_of(store, "/a")
    session_id = store.session_id
    await store.close()
    again = await stores.open()
    await write(again, Create("/b"))
    assert (await stat_of(again, "/b")).czxid > before.mzxid
    assert again.session_id != session_id


# Watches


async def heard(watch: asyncio.Future[WatchEvent]) -> WatchEvent:
    return await asyncio.wait_for(watch, 60)


@pytest.mark.parametrize(
    ("op", "change"),
    [(Set("/a", b"x"), Change.WRITTEN), (Delete("/a"), Change.DELETED)],
)
async def test_a_data_watch_hears_what_happens_to_its_node(
    stores: Stores, op: Op, change: Change
) -> None:
    store = await stores.open()
    await write(store, Create("/a"))
    watch = await store.watch_once("/a", WatchKind.DATA)
    await write(store, op)
    assert await heard(watch) == WatchEvent("/a", change)


async def test_a_data_watch_may_wait_for_a_node_to_come(stores: Stores) -> None:
    store = await stores.open()
    watch = await store.watch_once("/a", WatchKind.DATA)
    await write(store, Create("/a"))
    assert await heard(watch) == WatchEvent("/a", Change.CREATED)


@pytest.mark.parametrize("op", [Create("/a/new"), Delete("/a/old")])
async def test_a_children_watch_hears_comings_and_goings(stores: Stores, op: Op) -> None:
    store = await stores.open()
    await write(store, Create("/a"), Create("/a/old"))
    watch = await store.watch_once("/a", WatchKind.CHILDREN)
    await write(store, op)
    assert await heard(watch) == WatchEvent("/a", Change.CHILDREN)


async def test_a_children_watch_on_the_root_works(stores: Stores) -> None:
    store = await stores.open()
    watch = await store.watch_once("/", WatchKind.CHILDREN)
    await write(store, Create("/a"))
    assert await heard(watch) == WatchEvent("/", Change.CHILDREN)


async def test_a_children_watch_hears_the_end_of_its_node(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"))
    watch = await store.watch_once("/a", WatchKind.CHILDREN)
    await write(store, Delete("/a"))
    assert await heard(watch) == WatchEvent("/a", Change.DELETED)


async def test_a_children_watch_needs_a_node(stores: Stores) -> None:
    store = await stores.open()
    with pytest.raises(NoNode):
        await store.watch_once("/a", WatchKind.CHILDREN)


async def test_watches_stay_silent_about_everything_else(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"), Create("/a/b"), Create("/a/b/c"), Create("/other"))
    data = await store.watch_once("/a", WatchKind.DATA)
    children = await store.watch_once("/a", WatchKind.CHILDREN)
    await write(store, Set("/a/b", b"x"), Delete("/a/b/c"), Delete("/other"))
    await write(store, Check("/a", 0))
    await refused(store, Set("/a", b"x"), Create("/a/new"), Check("/a", 7))
    await store.get("/a")
    assert not data.done() and not children.done()
    await write(store, Create("/a/new"))
    assert not data.done()
    assert (await heard(children)).change is Change.CHILDREN
    data.cancel()


async def test_a_watch_fires_once(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"))
    watch = await store.watch_once("/a", WatchKind.DATA)
    await write(store, Set("/a", b"1"), Set("/a", b"2"))
    assert await heard(watch) == WatchEvent("/a", Change.WRITTEN)
    again = await store.watch_once("/a", WatchKind.DATA)
    await store.get("/a")
    assert not again.done()
    await write(store, Delete("/a"))
    assert await heard(again) == WatchEvent("/a", Change.DELETED)


async def test_of_a_creation_and_a_write_in_one_step_the_first_is_told(stores: Stores) -> None:
    store = await stores.open()
    watch = await store.watch_once("/a", WatchKind.DATA)
    await write(store, Create("/a"), Set("/a", b"x"))
    assert (await heard(watch)).change is Change.CREATED


async def test_all_watchers_of_a_node_are_told(stores: Stores) -> None:
    first, second = await stores.open(), await stores.open()
    await write(first, Create("/a"))
    watches = [await store.watch_once("/a", WatchKind.DATA) for store in (first, first, second)]
    await write(second, Set("/a", b"x"))
    assert [await heard(watch) for watch in watches] == [WatchEvent("/a", Change.WRITTEN)] * 3


async def test_a_change_is_heard_before_it_is_read(stores: Stores) -> None:
    first, second = await stores.open(), await stores.open()
    await write(first, Create("/a"))
    watch = await first.watch_once("/a", WatchKind.DATA)
    writing = asyncio.create_task(second.multi([Set("/a", b"new")]))
    while (await first.get("/a"))[0] != b"new":
        await asyncio.sleep(0)
    assert watch.done()
    await writing


async def test_a_change_made_before_the_watch_is_not_heard(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"))
    writing = asyncio.create_task(store.multi([Set("/a", b"x")]))
    await asyncio.sleep(0)  # The write is on its way before the watch.
    watch = await store.watch_once("/a", WatchKind.DATA)
    await writing
    await store.get("/a")
    assert not watch.done()
    watch.cancel()


async def test_a_cancelled_watch_leaves_the_others_alone(stores: Stores) -> None:
    store = await stores.open()
    await write(store, Create("/a"))
    unwanted = await store.watch_once("/a", WatchKind.DATA)
    wanted = await store.watch_once("/a", WatchKind.DATA)
    unwanted.cancel()
    await write(store, Set("/a", b"x"))
    assert (await heard(wanted)).change is Change.WRITTEN


async def test_the_end_of_anothers_session_is_heard_through_its_nodes(stores: Stores) -> None:
    first, second = await stores.open(), await stores.open()
    await write(first, Create("/ids"), Create("/ids/1", ephemeral=True))
    node = await second.watch_once("/ids/1", WatchKind.DATA)
    ids = await second.watch_once("/ids", WatchKind.CHILDREN)
    await first.close()
    assert await heard(node) == WatchEvent("/ids/1", Change.DELETED)
    assert await heard(ids) == WatchEvent("/ids", Change.CHILDREN)


async def test_the_end_of_the_own_session_is_told_to_its_watches(stores: Stores) -> None:
    store = await stores.open()
    await stores.open()
    watch = await store.watch_once("/a", WatchKind.DATA)
    await store.close()
    assert await heard(watch) == WatchEvent("/a", Change.SESSION_LOST)


def test_failures_say_what_and_where() -> None:
    failure = MultiFailed(2, Delete("/a"), NotEmpty("/a"))
    assert str(failure) == "operation 2 (Delete /a): NotEmpty: /a"
    assert isinstance(failure.reason, OpFailed)
