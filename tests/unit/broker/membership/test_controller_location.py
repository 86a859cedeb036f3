"""Who the controller is and where brokers listen, as the store and the images say."""

import asyncio
from pathlib import Path

from penstock.broker.membership.boot_id import note_boot_id, noted_boot_id, present_boot_id
from penstock.broker.membership.controller_location import AddressBook, StoredControllerLocation
from penstock.cluster import registration, znodes
from penstock.cluster.image.image import BrokerImage, ClusterImage, Endpoint
from penstock.cluster.registration import Newcomer
from penstock.cluster.znodes import PreviousShutdown
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import Create, Delete


def _at(port: int) -> tuple[Endpoint, ...]:
    return (
        Endpoint("OUTSIDE", "public.example", 9, "PLAINTEXT"),
        Endpoint("INSIDE", "10.0.0.1", port, "PLAINTEXT"),
    )


def _image(epoch: int, port: int) -> ClusterImage:
    broker = BrokerImage(broker_id=1, epoch=epoch, endpoints=_at(port), is_active=True)
    return ClusterImage(cluster_id="c", brokers={1: broker})


def test_brokers_find_each_other_on_their_own_listener() -> None:
    book = AddressBook("INSIDE")
    assert book.address_of(1) is None
    assert book.note_image(_image(5, 1000)) == []
    assert book.address_of(1) == ("10.0.0.1", 1000)


def test_the_newest_registration_says_where_a_broker_is() -> None:
    book = AddressBook("INSIDE")
    book.note_image(_image(5, 1000))
    assert book.note_image(_image(7, 2000)) == [1]
    assert book.note_image(_image(5, 1000)) == []  # An image from before it moved.
    assert book.address_of(1) == ("10.0.0.1", 2000)


def test_the_controller_is_followed_through_every_change(tmp_path: Path) -> None:
    async def play() -> list[int | None]:
        store = await SqliteStore.open(tmp_path / "store.db")
        await registration.prepare_tree(store, cluster_id="c")
        newcomer = Newcomer(
            broker_id=4,
            endpoints=_at(3000),
            rack=None,
            incarnation="first",
            directory_ids=("d",),
            prev_shutdown=PreviousShutdown.CLEAN,
        )
        await registration.register(store, newcomer, now_ms=0)
        book = AddressBook("INSIDE")
        location = StoredControllerLocation(book)
        following = asyncio.create_task(location.follow(store))
        seen: list[int | None] = []
        for holder in (None, 4, None, 4):
            if holder is not None:
                data = znodes.encode_controller(holder, 0)
                await store.multi([Create(znodes.CONTROLLER, data, ephemeral=True)])
            elif seen:
                await store.multi([Delete(znodes.CONTROLLER)])
            async with asyncio.timeout(60):
                while location.controller_id != holder:
                    await location.wait_for_change(0.05)
            seen.append(location.controller_id)
        assert book.address_of(4) == ("10.0.0.1", 3000)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await store.close()
        return seen

    assert asyncio.run(play()) == [None, 4, None, 4]


def test_a_run_of_the_machine_is_noted_and_read_back(tmp_path: Path) -> None:
    assert noted_boot_id(tmp_path) is None
    note_boot_id(tmp_path, "one")
    assert noted_boot_id(tmp_path) == "one"
    note_boot_id(tmp_path, None)  # A system that does not tell leaves nothing to compare with.
    assert noted_boot_id(tmp_path) is None
    assert present_boot_id() == present_boot_id()
