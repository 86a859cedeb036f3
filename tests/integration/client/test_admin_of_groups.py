"""Admin against a real broker: groups, their offsets, transactions, quotas, log directories."""

import re
from collections.abc import Iterator

import pytest
from tests.support.broker import BrokerProcess
from tests.support.waiting import eventually

from penstock import (
    Admin,
    Consumer,
    NewTopic,
    OffsetAndMetadata,
    OffsetSpec,
    Producer,
    TopicPartition,
)
from penstock.client.errors import ClientError
from penstock.client.operations.groups import GroupDescription
from penstock.client.operations.reassignments import Replica
from penstock.client.operations.transactions import HangingTransaction, TransactionDescription
from penstock.errors import (
    GroupIdNotFound,
    GroupNotEmpty,
    PenstockError,
    TransactionalIdNotFound,
    UnknownTopicOrPartition,
)


@pytest.fixture
def admin(shared_broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(bootstrap_servers=shared_broker.address) as made:
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return re.sub(r"[^a-zA-Z0-9]", "-", request.node.name)


@pytest.fixture
def at(shared_broker: BrokerProcess, admin: Admin, name: str) -> TopicPartition:
    """A partition with ten records, of times 1000 to 1009."""
    admin.create_topics([NewTopic(name=name, partitions=1)])
    with Producer({"bootstrap.servers": shared_broker.address}) as producer:
        for number in range(10):
            producer.send(name, f"v{number}", timestamp=1000 + number)
    return TopicPartition(name, 0)


def test_groups_are_listed_described_and_deleted(
    shared_broker: BrokerProcess, admin: Admin, at: TopicPartition, name: str
) -> None:
    settings = {"bootstrap.servers": shared_broker.address, "group.id": name}
    with Consumer(settings, auto_offset_reset="earliest", client_id="reader") as consumer:
        consumer.subscribe([at.topic])
        eventually(lambda: consumer.poll(0.2).count() > 0, timeout_s=120)
        found = admin.describe_consumer_groups([name, "nobody"])
        group = found[name]
        assert isinstance(group, GroupDescription)
        assert (group.state, [m.client_id for m in group.members]) == ("Stable", ["reader"])
        assert group.members[0].assignment == (at,)
        assert isinstance(found["nobody"], GroupIdNotFound)
        assert [g.group_id for g in admin.list_groups(states=["Stable"])].count(name) == 1
        assert isinstance(admin.delete_consumer_groups([name])[name], GroupNotEmpty)
        with pytest.raises(GroupNotEmpty, match="inactive"):
            admin.reset_consumer_group_offsets(name, spec=OffsetSpec.EARLIEST)
    assert name in [g.group_id for g in admin.list_consumer_groups(states=["Empty"])]
    assert admin.delete_consumer_groups([name]) == {name: None}
    assert name not in [g.group_id for g in admin.list_groups()]


def test_members_of_a_group_are_removed(
    shared_broker: BrokerProcess, admin: Admin, at: TopicPartition, name: str
) -> None:
    settings = {"bootstrap.servers": shared_broker.address, "group.id": name}
    with Consumer(settings) as consumer:
        consumer.subscribe([at.topic])
        eventually(lambda: consumer.poll(0.2) is not None and consumer.assignment(), timeout_s=120)
        group = admin.describe_consumer_groups([name])[name]
        assert isinstance(group, GroupDescription)
        admin.remove_members_from_consumer_group(name, group.members, reason="a test")
        after = admin.describe_consumer_groups([name])[name]
        assert isinstance(after, GroupDescription)
        assert after.members == ()


def test_offsets_of_a_group_are_set_listed_moved_and_deleted(
    admin: Admin, at: TopicPartition, name: str
) -> None:
    admin.alter_consumer_group_offsets(name, {at: OffsetAndMetadata(4, "a note")})
    assert admin.list_consumer_group_offsets(name) == {at: OffsetAndMetadata(4, "a note")}
    assert admin.reset_consumer_group_offsets(name, shift_by=-1) == {at: 3}
    assert admin.list_consumer_group_offsets(name)[at].offset == 3
    assert admin.reset_consumer_group_offsets(name, offset=99) == {at: 10}
    assert admin.reset_consumer_group_offsets(name, [at], spec=OffsetSpec.EARLIEST) == {at: 0}
    assert admin.reset_consumer_group_offsets(name, [at], time_ms=1005) == {at: 5}
    assert admin.reset_consumer_group_offsets(name, [at], time_ms=2000) == {at: 10}
    assert admin.list_consumer_group_offsets(name)[at].offset == 10
    assert admin.delete_consumer_group_offsets(name, [at]) == {at: None}
    assert admin.list_consumer_group_offsets(name) == {}


def test_an_offset_committed_without_a_note_has_none(
    shared_broker: BrokerProcess, admin: Admin, at: TopicPartition, name: str
) -> None:
    settings = {"bootstrap.servers": shared_broker.address, "group.id": name}
    with Consumer(settings, enable_auto_commit=False) as consumer:
        consumer.assign([at])
        consumer.commit({at: OffsetAndMetadata(4)})
    assert admin.list_consumer_group_offsets(name) == {at: OffsetAndMetadata(4)}


def test_a_reset_that_makes_no_sense_changes_nothing(
    admin: Admin, at: TopicPartition, name: str
) -> None:
    with pytest.raises(ValueError, match="give one of"):
        admin.reset_consumer_group_offsets(name, [at], offset=1, shift_by=1)
    with pytest.raises(ClientError, match="no current committed offset"):
        admin.reset_consumer_group_offsets(name, [at], shift_by=1)
    with pytest.raises(UnknownTopicOrPartition):
        admin.reset_consumer_group_offsets(name, [TopicPartition(at.topic, 7)], offset=1)
    assert admin.list_consumer_group_offsets(name) == {}


def test_transactions_are_listed_described_and_fenced(
    shared_broker: BrokerProcess, admin: Admin, at: TopicPartition, name: str
) -> None:
    settings = {"bootstrap.servers": shared_broker.address, "transactional.id": name}
    with Producer(settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(at.topic, "v").result(120)
        found = admin.describe_transactions([name, "nobody"])
        under_way = found[name]
        assert isinstance(under_way, TransactionDescription)
        assert (under_way.state, under_way.partitions) == ("Ongoing", (at,))
        assert isinstance(found["nobody"], TransactionalIdNotFound)
        listed = admin.list_transactions(producer_ids=[under_way.producer_id])
        assert [one.transactional_id for one in listed] == [name]
        remembered = admin.describe_producers([at])[at]
        assert under_way.producer_id in [one.producer_id for one in remembered]
        admin.fence_producers([name])
        with pytest.raises(PenstockError):
            producer.commit_transaction()
    ended = admin.describe_transactions([name])[name]
    assert isinstance(ended, TransactionDescription)
    assert (ended.state, ended.partitions) == ("Empty", ())


def test_a_transaction_in_one_partition_is_aborted_by_hand(
    shared_broker: BrokerProcess, admin: Admin, at: TopicPartition, name: str
) -> None:
    settings = {"bootstrap.servers": shared_broker.address, "transactional.id": name}
    with Producer(settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(at.topic, "v").result(120)
        (open_one,) = (
            one for one in admin.describe_producers([at])[at] if one.transaction_start_offset
        )
        admin.abort_transaction(
            HangingTransaction(
                partition=at,
                producer_id=open_one.producer_id,
                producer_epoch=open_one.producer_epoch,
                coordinator_epoch=max(0, open_one.coordinator_epoch),
            )
        )
        (after,) = (
            one
            for one in admin.describe_producers([at], broker_id=0)[at]
            if one.producer_id == open_one.producer_id
        )
        assert after.transaction_start_offset is None


def test_quotas_are_set_shown_and_removed(admin: Admin, name: str) -> None:
    entity = (("client-id", name),)
    admin.alter_client_quotas(entity, {"producer_byte_rate": 1024.0})
    assert admin.describe_client_quotas({"client-id": name}) == {
        entity: {"producer_byte_rate": 1024.0}
    }
    admin.alter_client_quotas(entity, {"producer_byte_rate": None})
    assert admin.describe_client_quotas({"client-id": name}) == {}


def test_replicas_are_found_in_their_directories(admin: Admin, at: TopicPartition) -> None:
    here, nowhere = Replica(*at, 0), Replica(at.topic, 7, 0)
    gone = Replica(*at, 99)
    found = admin.describe_replica_log_dirs([here, nowhere, gone])
    (directory,) = admin.describe_log_dirs()[0]
    assert found[here].current == directory.path
    assert (found[here].current_lag, found[here].future) == (0, None)
    assert found[nowhere].current is found[gone].current is None
