"""A consumer group's next state, and the records that lead to it.

Whatever happens to a group is worked out on a draft. Nothing of it is true before its records are
in the log; a draft that cannot be written is thrown away, and the group is as it was.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from penstock.assignors import Subscriber
from penstock.cluster.image.image import ClusterImage
from penstock.coordination.machine import KeyValue
from penstock.groups.consumer import records
from penstock.groups.consumer.member import ConsumerMember
from penstock.groups.consumer.reconcile import Goal, Owned, reconcile
from penstock.groups.consumer.records import Change, Resolved, encoded
from penstock.groups.consumer.state import GroupState
from penstock.groups.consumer.view import ClusterView
from penstock.groups.surroundings import VisibleTopics

_PATTERNS_REST_MS: Final = 10_000  # Between two look-ups of patterns in one group.


class Draft:
    """One group, one step ahead of the log."""

    def __init__(
        self,
        state: GroupState,
        view: ClusterView,
        *,
        seen_image: ClusterImage | None = None,
        records: Sequence[KeyValue] = (),
    ) -> None:
        self.state = state  # Copied before its first change.
        self.records: list[KeyValue] = list(records)  # What another kind of group leaves behind.
        self.seen_image = seen_image  # The topics that the metadata hash is of; None: not known.
        # What the sender of the request at hand may know of. None: nobody asks, and no pattern is
        # looked up, for it could match topics that its members must not know of.
        self.visible: VisibleTopics | None = None
        self._view = view
        self._is_own = False

    @property
    def group_id(self) -> str:
        return self.state.group_id

    def add(self, changes: Iterable[Change]) -> None:
        for key, value in changes:
            if not self._is_own:
                self.state, self._is_own = self.state.copy(), True
            self.state.apply(key, value)
            self.records.append(encoded(key, value))

    # Members

    def put_member(self, member: ConsumerMember) -> None:
        if self.state.members.get(member.member_id) != member:
            self.add([records.member(self.group_id, member)])

    def replace_member(self, old: ConsumerMember, new: ConsumerMember) -> None:
        """A static member is back under another id: it takes over all that it had."""
        target = self.state.target_of(old.member_id)
        self.add(self._removal(old.member_id))
        self.add(
            [
                records.member(self.group_id, new),
                records.target(self.group_id, new.member_id, target),
                records.current(self.group_id, new),
            ]
        )

    def remove_members(self, members: Iterable[ConsumerMember]) -> None:
        """They are gone, and the others are to share what they had."""
        for member in members:
            self.add(self._removal(member.member_id))
        self._drop_patterns()
        self._bump()

    def _removal(self, member_id: str) -> list[Change]:
        """What it owns goes first: a reader of the log sees no owner who is not a member."""
        return [
            records.no_current(self.group_id, member_id),
            records.no_target(self.group_id, member_id),
            records.no_member(self.group_id, member_id),
        ]

    # From a subscription to an assignment

    def follow(
        self, before: ConsumerMember, after: ConsumerMember, owned: Owned | None
    ) -> ConsumerMember:
        """Bring all of the group up to date with what a member just told of itself."""
        is_new = self.subscribe(before, after)
        self.retarget()
        return self.reconcile(after.member_id, owned, has_new_subscription=is_new)

    def subscribe(self, before: ConsumerMember, after: ConsumerMember) -> bool:
        """Note the member and its subscription; whether the latter is another than before."""
        is_new = before.topic_names != after.topic_names
        self.put_member(after)
        if before.topic_pattern != after.topic_pattern:
            is_new = True
            self._drop_patterns()
            self._resolve_new(after.topic_pattern)
        has_other_topics = self._refresh_patterns()
        self._check_topics(must_bump=is_new or has_other_topics)
        return is_new

    def _check_topics(self, *, must_bump: bool) -> None:
        """Begin a new epoch if the subscriptions changed, or the topics they name."""
        image = self._view.image
        if not must_bump and self.seen_image is image:
            return
        found = self._view.metadata_hash(self.state.subscribed_topics())
        if must_bump or found != self.state.metadata_hash:
            self._bump(found)
        self.seen_image = image
        if self.state.has_partition_metadata:
            self.add([records.no_partition_metadata(self.group_id)])

    def _bump(self, metadata_hash: int | None = None) -> None:
        self.begin_epoch(self.state.group_epoch + 1, metadata_hash)

    def begin_epoch(self, epoch: int, metadata_hash: int | None = None) -> None:
        """The hash is of the subscribed topics; None: it is worked out here."""
        if metadata_hash is None:
            metadata_hash = self._view.metadata_hash(self.state.subscribed_topics())
        self.add([records.group_epoch(self.group_id, epoch, metadata_hash)])
        self._view.around.report(f"[GroupId {self.group_id}] Bumped group epoch to {epoch}.")

    # Patterns

    def _drop_patterns(self) -> None:
        """Forget those that nobody subscribes to any more."""
        for pattern in [p for p in self.state.patterns if not self.state.subscribers_of_pattern(p)]:
            self.add([records.pattern(self.group_id, pattern, None)])

    def _resolve_new(self, pattern: str) -> None:
        if pattern and pattern not in self.state.patterns and self.visible is not None:
            resolved = _seen(self._view.resolve(pattern), self.visible)
            self.add([records.pattern(self.group_id, pattern, resolved)])

    def _refresh_patterns(self) -> bool:
        """Look them up again from time to time; whether any matches other topics by now."""
        visible = self.visible
        if not self.state.patterns or visible is None:
            return False
        oldest_ms = min(resolved.at_ms for resolved in self.state.patterns.values())
        age_ms = self._view.now_ms() - oldest_ms
        if age_ms <= _PATTERNS_REST_MS:
            return False
        found = {
            p: _seen(self._view.resolve_again(p, r), visible)
            for p, r in self.state.patterns.items()
        }
        has_other_topics = any(r.topics != self.state.patterns[p].topics for p, r in found.items())
        if has_other_topics or age_ms > self._view.config.group_consumer_regex_refresh_interval_ms:
            self.add(records.pattern(self.group_id, p, found[p]) for p in sorted(found))
        return has_other_topics

    # The target

    def retarget(self) -> None:
        """Work out who shall have what, if the epoch asks for it and the last time was long ago."""
        state = self.state
        if state.assignment_epoch >= state.group_epoch or not self._is_target_due():
            return
        assignors = self._view.assignors()
        name = state.preferred_assignor()
        if name is None or name not in assignors:
            name = next(iter(assignors))
        counts = self._view.partition_counts(state.subscribed_topics())
        assigned = assignors[name](self._subscribers(), counts)
        for member_id in sorted(state.members):
            target = {t: frozenset(p) for t, p in assigned[member_id].items()}
            if target != state.target.get(member_id):
                self.add([records.target(self.group_id, member_id, target)])
        self.add([records.target_epoch(self.group_id, state.group_epoch, self._view.now_ms())])
        self._view.around.report(
            f"[GroupId {self.group_id}] Computed a new target assignment for epoch "
            f"{state.group_epoch} with '{name}' assignor."
        )

    def _is_target_due(self) -> bool:
        """A crowd that joins at once is assigned once."""
        interval_ms = self._view.settings(self.group_id).assignment_interval_ms
        if not self.state.assignment_ms or not interval_ms:
            return True
        return self._view.now_ms() >= self.state.assignment_ms + interval_ms

    def _subscribers(self) -> list[Subscriber[bytes]]:
        ids_of: dict[frozenset[str], frozenset[bytes]] = {}  # Most members want the same.
        subscribers = []
        for member in self.state.members.values():
            topics = self.state.topics_of(member)
            if topics not in ids_of:
                ids_of[topics] = self._view.topic_ids(topics)
            subscribers.append(
                Subscriber(
                    member_id=member.member_id,
                    topics=ids_of[topics],
                    owned=self.state.target_of(member.member_id),
                    instance_id=member.instance_id,
                )
            )
        return subscribers

    # The assignment

    def reconcile(
        self, member_id: str, owned: Owned | None, *, has_new_subscription: bool
    ) -> ConsumerMember:
        """Take the member one step further towards its target."""
        state = self.state
        member = state.members[member_id]
        if not has_new_subscription and member.is_settled_at(state.assignment_epoch):
            return member
        topics, name_of = state.topics_of(member), self._view.image.topic_names_by_id
        goal = Goal(
            epoch=state.assignment_epoch,
            target=state.target_of(member_id),
            is_subscribed=lambda topic_id: name_of.get(topic_id) in topics,
            is_free=lambda topic_id, partition: state.is_free(topic_id, partition, member_id),
        )
        after = reconcile(member, goal, owned, has_new_subscription=has_new_subscription)
        if after != member:
            self.add([records.current(self.group_id, after)])
        return after


def _seen(resolved: Resolved, visible: VisibleTopics) -> Resolved:
    """Without the topics that whoever had the pattern looked up must not know of."""
    return resolved._replace(topics=frozenset(visible(resolved.topics)))
