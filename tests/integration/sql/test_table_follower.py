"""Followers of tables at a real broker."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.broker import BrokerProcess

from penstock.client.admin import Admin
from penstock.client.operations.topics import NewTopic
from penstock.client.producer.producer import Producer
from penstock.sql.asking import table_follower
from penstock.sql.asking.table_follower import TableFollower, TableFollowers

TOPIC = "followed-in-two-steps"


def test_nobody_is_answered_before_every_partition_is_read(
    shared_broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_is_read, may_go_on = threading.Event(), threading.Event()

    class Halting(TableFollower):
        def _load(self, partition: int, begin: int, end: int) -> None:
            if partition == 1:
                first_is_read.set()
                assert may_go_on.wait(60)
            super()._load(partition, begin, end)

    monkeypatch.setattr(table_follower, "TableFollower", Halting)
    client = {"bootstrap.servers": shared_broker.address}
    with Admin(client) as admin:
        admin.create_topics([NewTopic(name=TOPIC, partitions=2)])
    with Producer(client) as producer:
        for partition in (0, 1):
            producer.send(TOPIC, key=b"k%d" % partition, value=b"v", partition=partition)
    followers = TableFollowers(client)
    with ThreadPoolExecutor(2) as askers:
        asked = askers.submit(followers.current, TOPIC, 60.0)
        try:
            assert first_is_read.wait(60)
            assert followers.at_hand(TOPIC) is None
            second = askers.submit(followers.current, TOPIC, 60.0)
        finally:
            may_go_on.set()
        for found in (asked.result(60), second.result(60)):
            row = found.get(b"k1")
            assert row is not None and row.value == b"v"
    assert followers.at_hand(TOPIC) is not None
    followers.close()
