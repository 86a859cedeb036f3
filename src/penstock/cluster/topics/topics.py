"""Topics made, grown and deleted: planned against the image, written, then published."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Final, NamedTuple

from penstock.cluster import znodes
from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.control.ledger import ImageLedger
from penstock.cluster.image.image import (
    ImageDelta,
    PartitionImage,
    PartitionKey,
    PartitionState,
    TopicImage,
)
from penstock.cluster.image.load import Unsettled, load_states, read_nodes, topic_image
from penstock.cluster.topics import steps as topic_steps
from penstock.cluster.topics.names import (
    check_no_collision,
    check_topic_name,
    metric_name,
    topic_id_from,
)
from penstock.cluster.topics.plan import (
    Assignment,
    Chance,
    PartitionsToAdd,
    TopicToCreate,
    plan_growth,
    plan_topic,
)
from penstock.cluster.transition import initial_state
from penstock.cluster.znodes import NodeUnreadable, TopicNode
from penstock.errors import (
    InconsistentTopicId,
    KafkaStorage,
    ProtocolError,
    RequestTimedOut,
    TopicExists,
    UnknownTopicOrPartition,
)
from penstock.meta.deadline import StoreTimedOut
from penstock.meta.store import (
    Create,
    Delete,
    MetaError,
    MultiFailed,
    NodeExists,
    Op,
    Set,
    StoreUnavailable,
)

RandomBytes = Callable[[int], bytes]

# Whoever hosts their partitions gives them up in one go.
_DELETED_AT_ONCE: Final = 100

_log = logging.getLogger("penstock.cluster.controller")


class Planned(NamedTuple):
    """A topic that can be made as asked."""

    topic: TopicImage
    configs: Mapping[str, str]


class Topics:
    def __init__(
        self, writes: FencedWrites, ledger: ImageLedger, random_bytes: RandomBytes
    ) -> None:
        self._writes = writes
        self._ledger = ledger
        self._random_bytes = random_bytes
        self._doubtful: set[str] = (
            set()
        )  # Topics of which a change broke off; the store shows how far it came.
        self._names_by_metric: dict[str, set[str]] = {}
        for name in ledger.image.topics:
            self._names_by_metric.setdefault(metric_name(name), set()).add(name)

    def plan(
        self, wanted: Sequence[TopicToCreate], planned_names: dict[str, set[str]]
    ) -> list[Planned | ProtocolError]:
        """Each against the image and those before it, in this call and those it belongs to."""
        plans: list[Planned | ProtocolError] = []
        for new in wanted:
            try:
                plan = self._plan_one(new, planned_names)
            except ProtocolError as error:
                plans.append(error)
                continue
            planned_names.setdefault(metric_name(new.name), set()).add(new.name)
            plans.append(plan)
        return plans

    async def create(self, plans: Sequence[Planned]) -> dict[str, ProtocolError]:
        """Write them down; returns an error for each that could not be, by topic name."""
        errors: dict[str, ProtocolError] = {}
        for group in _in_groups(plans, self._writes.ops_max):
            try:
                await self._create_group(group)
            except MultiFailed as failure:
                if len(group) == 1:
                    errors |= await self._create_in_spite_of(group[0], failure)
                    continue
                for plan in group:  # One of them is refused; each is written for itself.
                    errors |= await self.create([plan])
            except StoreUnavailable as error:
                refusal = _refusal(error)
                errors |= {plan.topic.name: refusal for plan in group}
        return errors

    def in_writes(self, names: Sequence[str]) -> Iterator[list[str]]:
        """Small topics that one write can delete together; all else comes alone."""
        together: dict[str, int] = {}  # With how many operations each takes.
        for name in names:
            topic = self._ledger.image.topics.get(name)
            size = self._writes.ops_max
            if topic is not None and name not in self._doubtful:
                size = topic_steps.op_count(len(topic.partitions))
            is_full = sum(together.values()) + size > self._writes.ops_max
            if together and (is_full or name in together or len(together) >= _DELETED_AT_ONCE):
                yield list(together)
                together = {}
            together[name] = size
        if together:
            yield list(together)

    async def delete_together(self, names: Sequence[str]) -> bool:
        """Whether all were deleted in one write; if not, none was."""
        image = self._ledger.image
        if not self._doubtful.isdisjoint(names) or not all(n in image.topics for n in names):
            return False
        ops = [
            op
            for name in names
            for op in topic_steps.deletion_ops(image.topics[name], self._config_deletion(name))
        ]
        if len(ops) > self._writes.ops_max:
            return False
        async with AsyncExitStack() as stack:
            for name in names:
                await stack.enter_async_context(self.doubt_on_failure(name))
            try:
                await self._writes.commit(ops)
            except MultiFailed:  # One of them is not as we know it; the others shall not suffer.
                return False
        self._forget(*names)
        return True

    async def delete(self, name: str) -> None:
        await self.clear_doubt(name)
        topic = self._ledger.image.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartition("This server does not host this topic-partition.")
        version = self._ledger.topic_versions[name]
        async with self.doubt_on_failure(name):
            await topic_steps.delete(self._writes, topic, version, self._config_deletion(name))
        self._forget(name)

    def _config_deletion(self, name: str) -> list[Op]:
        key = ("topics", name)
        has_config = key in self._ledger.config_versions
        return [Delete(znodes.config_path(*key))] if has_config else []

    async def check_growth(self, new: PartitionsToAdd) -> None:
        """Raise what `grow` would, and change nothing."""
        self._grown(new)

    def _grown(self, new: PartitionsToAdd) -> TopicImage:
        image = self._ledger.image
        topic = image.topics.get(new.name)
        if topic is None:
            raise UnknownTopicOrPartition("This server does not host this topic-partition.")
        added = self._partitions(new.name, plan_growth(new, topic, image), None)
        return replace(topic, partitions={**topic.partitions, **added})

    async def grow(self, new: PartitionsToAdd) -> None:
        name = new.name
        await self.clear_doubt(name)
        after = self._grown(new)
        before, version = self._ledger.image.topics[name], self._ledger.topic_versions[name]
        async with self.doubt_on_failure(name):
            grown = await topic_steps.grow(self._writes, before, after, version)
        self._ledger.topic_versions[name] = grown
        self._ledger.publish(ImageDelta(topics={name: after}))

    async def look_around(self) -> None:
        """Take notice of topics that came, went or changed in the store without us."""
        store, versions = self._writes.store, self._ledger.topic_versions
        names = await store.children(znodes.TOPICS)
        nodes = await read_nodes(store, [znodes.topic_path(name) for name in names])
        found = {n: node[1].version for n, node in zip(names, nodes, strict=True) if node}
        changed = [n for n in {**versions, **found} if versions.get(n) != found.get(n)]
        for name in changed:
            try:
                await self.look_again(name)
            except NodeUnreadable as error:
                _log.error("Topic %s is left as it was: %s", name, error)

    async def look_again(self, name: str) -> None:
        """Finish or remove what broke off, and take over what the store has of this topic."""
        path, key = znodes.topic_path(name), ("topics", name)
        found, config = await self._writes.store.multi_get([path, znodes.config_path(*key)])
        if found is None:
            self._forget(name)
            if config is not None:  # Whoever removed the topic left its settings behind.
                self._ledger.config_versions[key] = config[1].version
            return None
        node, version = TopicNode.decode(path, found[0]), found[1].version
        if node.unsettled is not None:
            settled = await topic_steps.settle(self._writes, Unsettled(name, node, version))
            if settled is None:
                return self._forget(name)
            version = settled
        await self._take_over(name, node, version)
        return None

    async def align_ids(self, unsettled: Sequence[Unsettled]) -> None:
        """Every topic has the node of its id, also one that came from elsewhere; nobody else."""
        wanted = {topic.topic_id for topic in self._ledger.image.topics.values()}
        wanted |= {left.node.topic_id for left in unsettled}
        paths = {znodes.topic_id_path(topic_id) for topic_id in wanted}
        found = {
            f"{znodes.TOPIC_IDS}/{name}"
            for name in await self._writes.store.children(znodes.TOPIC_IDS)
        }
        ops: list[Op] = [Create(path) for path in sorted(paths - found)]
        ops += [Delete(path) for path in sorted(found - paths)]
        for some in topic_steps.in_batches(ops, self._writes.ops_max):
            await self._writes.commit(some)

    def _plan_one(self, new: TopicToCreate, planned: Mapping[str, set[str]]) -> Planned:
        check_topic_name(new.name)
        metric = metric_name(new.name)
        taken = self._names_by_metric.get(metric, set()) | planned.get(metric, set())
        if new.name in taken:
            raise TopicExists(f"Topic '{new.name}' already exists.")
        check_no_collision(new.name, taken)
        if new.topic_id in self._ledger.image.topic_names_by_id:
            raise InconsistentTopicId(f"The id of topic '{new.name}' is another topic's.")
        assignment = plan_topic(new, self._ledger.image, self._chance())
        topic = TopicImage(
            name=new.name,
            topic_id=new.topic_id or self._new_topic_id(),
            partitions=self._partitions(new.name, assignment, new.configs),
        )
        return Planned(topic=topic, configs=new.configs)

    def _partitions(
        self, name: str, assignment: Assignment, configs: Mapping[str, str] | None
    ) -> dict[int, PartitionImage]:
        image = self._ledger.image
        active = image.active_brokers()
        replica_count = len(next(iter(assignment.values())))
        min_isr = self._ledger.min_isr(name, replica_count, configs)
        return {
            number: PartitionImage(
                replicas=replicas,
                state=initial_state(
                    replicas,
                    active=active,
                    min_isr=min_isr,
                    controller_epoch=image.controller_epoch,
                ),
            )
            for number, replicas in assignment.items()
        }

    def _chance(self) -> Chance:
        count = max(1, len(self._ledger.image.brokers))
        start, shift = self._random_bytes(4), self._random_bytes(4)
        return Chance(
            start=int.from_bytes(start, "big") % count, shift=int.from_bytes(shift, "big") % count
        )

    def _new_topic_id(self) -> bytes:
        while True:
            topic_id = topic_id_from(self._random_bytes(16))
            if topic_id is not None and topic_id not in self._ledger.image.topic_names_by_id:
                return topic_id

    async def _create_group(self, group: Sequence[Planned]) -> None:
        version = 0
        if topic_steps.op_count(len(group[0].topic.partitions)) > self._writes.ops_max:
            (plan,) = group
            version = await topic_steps.create_large(
                self._writes, plan.topic, self._config_op(plan)
            )
        else:
            creations = [topic_steps.creation_ops(p.topic, self._config_op(p)) for p in group]
            await self._writes.commit([op for ops in creations for op in ops])
        self._note_created(group, version)

    def _config_op(self, plan: Planned) -> Op:
        key = ("topics", plan.topic.name)
        path, data = znodes.config_path(*key), znodes.encode_config(plan.configs)
        version = self._ledger.config_versions.get(key)
        return Create(path, data) if version is None else Set(path, data, version)

    def _note_created(self, group: Sequence[Planned], version: int) -> None:
        versions = self._ledger.config_versions
        for plan in group:
            name = plan.topic.name
            self._ledger.topic_versions[name] = version
            versions["topics", name] = versions.get(("topics", name), -1) + 1
            self._names_by_metric.setdefault(metric_name(name), set()).add(name)
        self._ledger.publish(
            ImageDelta(
                topics={plan.topic.name: plan.topic for plan in group},
                configs={("topics", p.topic.name): p.configs for p in group if p.configs},
            )
        )

    async def _create_in_spite_of(
        self, plan: Planned, failure: MultiFailed
    ) -> dict[str, ProtocolError]:
        """The store has something under this name: a topic, or what is left of one."""
        name = plan.topic.name
        if not isinstance(failure.reason, NodeExists):
            raise failure
        await self.look_again(name)
        if name in self._ledger.image.topics:
            return {name: TopicExists(f"Topic '{name}' already exists.")}
        await self._create_group([plan])
        return {}

    @asynccontextmanager
    async def doubt_on_failure(self, name: str) -> AsyncIterator[None]:
        try:
            yield
        except MetaError:
            self._doubtful.add(name)
            with suppress(MetaError):  # If the store fails, the next change reads again.
                await self.clear_doubt(name)
            raise

    async def clear_doubt(self, name: str) -> None:
        if name in self._doubtful:
            await self.look_again(name)
            self._doubtful.discard(name)

    async def _take_over(self, name: str, node: TopicNode, version: int) -> None:
        self._ledger.topic_versions[name] = version
        known = self._ledger.image.topics.get(name)
        if known is not None and topic_steps.topic_node(known) == node._replace(unsettled=None):
            return
        states = await load_states(self._writes.store, [(name, n) for n in node.partitions])
        _refuse_inconsistent(name, node, states)
        await self._note_id(node.topic_id)
        self._names_by_metric.setdefault(metric_name(name), set()).add(name)
        self._ledger.publish(ImageDelta(topics={name: topic_image(name, node, states)}))

    async def _note_id(self, topic_id: bytes) -> None:
        try:
            await self._writes.commit([Create(znodes.topic_id_path(topic_id))])
        except MultiFailed as failure:
            if not isinstance(failure.reason, NodeExists):
                raise

    def _forget(self, *names: str) -> None:
        for name in names:
            self._ledger.topic_versions.pop(name, None)
            self._ledger.config_versions.pop(("topics", name), None)
            self._names_by_metric.get(metric_name(name), set()).discard(name)
        gone = [name for name in names if name in self._ledger.image.topics]
        if gone:
            configs = {("topics", name): None for name in gone}
            self._ledger.publish(ImageDelta(topics=dict.fromkeys(gone), configs=configs))


def _refuse_inconsistent(
    name: str, node: TopicNode, states: Mapping[PartitionKey, PartitionState]
) -> None:
    """An assignment that somebody edited by hand may leave out who has the records (KAFKA-9672)."""
    for (_, number), state in states.items():
        strangers = {*state.isr, *state.elr} - set(node.partitions[number])
        if strangers:
            raise NodeUnreadable(
                znodes.topic_path(name),
                f"brokers {sorted(strangers)} are in sync for partition {number}, but not among "
                "its replicas; move partitions with kafka-reassign-partitions",
            )


def _in_groups(plans: Sequence[Planned], ops_max: int) -> Iterator[list[Planned]]:
    """Small topics go into one multi together, a large one alone."""
    group: list[Planned] = []
    size = 0
    for plan in plans:
        own_size = topic_steps.op_count(len(plan.topic.partitions))
        size += own_size
        if group and size > ops_max:
            yield group
            group, size = [], own_size
        group.append(plan)
    if group:
        yield group


def _refusal(error: StoreUnavailable) -> ProtocolError:
    if isinstance(error, StoreTimedOut):
        return RequestTimedOut(f"The metadata store is away: {error}")
    return KafkaStorage(f"The metadata store cannot be written: {error}")
