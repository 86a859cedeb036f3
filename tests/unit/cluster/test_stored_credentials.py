"""Credentials in the store before a broker runs: where brokers look for them, beside quotas."""

from pathlib import Path

from penstock.cluster import znodes
from penstock.cluster.registration import prepare_tree
from penstock.cluster.stored_credentials import store_credentials
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import Set

PATH = "/config/users/al%20ice"


async def test_a_credential_is_stored_in_an_empty_store_and_stays(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "m.db")
    await store_credentials(store, "al ice", {"SCRAM-SHA-256": "x"})
    await prepare_tree(store, cluster_id="AAAAAAAAQACAAAAAAAAAAQ")  # As the first broker does.
    content, _ = await store.get(PATH)
    assert znodes.decode_config(PATH, content) == {"SCRAM-SHA-256": "x"}
    (notice,) = await store.children(znodes.CONFIG_CHANGES)
    told, _ = await store.get(f"{znodes.CONFIG_CHANGES}/{notice}")
    assert znodes.decode_config_change("/", told) == ("users", "al%20ice")
    await store.close()


async def test_what_else_the_user_has_is_kept(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "m.db")
    await store_credentials(store, "al ice", {"SCRAM-SHA-256": "x", "SCRAM-SHA-512": "y"})
    known = {"SCRAM-SHA-256": "x", "SCRAM-SHA-512": "y", "producer_byte_rate": "1"}
    await store.multi([Set(PATH, znodes.encode_config(known))])
    await store_credentials(store, "al ice", {"SCRAM-SHA-256": None, "SCRAM-SHA-512": "z"})
    content, _ = await store.get(PATH)
    kept = {"SCRAM-SHA-512": "z", "producer_byte_rate": "1"}
    assert znodes.decode_config(PATH, content) == kept
    await store.close()
