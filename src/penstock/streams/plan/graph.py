"""A topology while it is built: names are given, stores come when somebody needs them.

A table without a named store gets one only when its old rows or its present ones are asked for, as
in Kafka Streams. So steps are made at the end, when that is known.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.streams.plan.nodes import NodeKind, PlanNode, StoreKind, StoreSpec, StreamsTopology
from penstock.streams.steps.contract import RecordStep
from penstock.streams.values.records import Intake, StreamRecord
from penstock.streams.values.serdes import JSON, STRING, Serde

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class TopologyError(ValueError):
    """A topology that cannot be built; the text says what is wrong."""


def legal_name(name: Any, what: str) -> None:
    """TopologyError for a name that no topic could have, for topics are named after it."""
    if not isinstance(name, str):
        raise TopologyError(f"{what}'s name must be text, and is {name!r}")
    if LEGAL_NAME.fullmatch(name) is None or name in (".", ".."):
        raise TopologyError(
            f"{what} {name!r} has no legal name: letters, digits, '.', '_' and '-', at most 249"
        )


def check_serde(given: Any, name: str) -> None:
    """TopologyError for what is no serde; None is as good as one."""
    if given is not None and not isinstance(given, Serde):
        raise TopologyError(
            f"{name}: {given!r} is no serde. There are STRING, LONG, INTEGER, DOUBLE, BYTES, JSON, "
            "json_of(...), those of a registry, and Serde(name, write, read)"
        )


@dataclass(slots=True, kw_only=True)
class NodeDraft:
    """A node that may still learn that it needs a store or old values."""

    name: str
    kind: NodeKind = "processor"
    parents: list[str] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    topic_of: Callable[[StreamRecord], str] | None = None
    intake: Intake | None = None
    make: Callable[["NodeDraft"], RecordStep] = lambda draft: RecordStep()
    state: str | None = None
    table: str | None = None
    rows_of: tuple[str, ...] = ()
    branches: list[str] = field(default_factory=list)
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    is_global: bool = False
    is_table_source: bool = False
    store_when_needed: str | None = None
    sends_old: bool = False
    takes_null_keys: bool = False  # A left or outer join: it sends records without a key on.
    old_from: tuple[str, ...] = ()  # Tables that must send old values for this one to do so.

    @property
    def has_store(self) -> bool:
        """Whether the step keeps rows of its own."""
        return self.state is not None


@dataclass(slots=True, kw_only=True)
class Graph:
    """Nodes and stores in the making."""

    default_key: Serde[Any] = STRING
    default_value: Serde[Any] = JSON
    drafts: dict[str, NodeDraft] = field(default_factory=dict)
    stores: dict[str, StoreSpec] = field(default_factory=dict)
    internal_topics: set[str] = field(default_factory=set)
    number: int = 0

    def __post_init__(self) -> None:
        check_serde(self.default_key, "the builder's key")
        check_serde(self.default_value, "the builder's value")

    def new_name(self, prefix: str) -> str:
        """`KSTREAM-FILTER-0000000003`: all nodes and stores draw from one row of numbers."""
        name = f"{prefix}{self.number:010d}"
        self.number += 1
        return name

    def named(self, name: str | None, suffix: str, prefix: str) -> str:
        """A part of an operation: the operation's name with a suffix, or one that is drawn.

        Kafka Streams draws a number also where it does not use it, so that a name changes no other.
        """
        if name is not None:
            legal_name(name, "the operation")
        drawn = self.new_name(prefix)
        return drawn if name is None else name + suffix

    def new_store_name(self, prefix: str) -> str:
        """`KSTREAM-AGGREGATE-STATE-STORE-0000000002`."""
        return self.new_name(f"{prefix}STATE-STORE-")

    def add(self, draft: NodeDraft) -> NodeDraft:
        """Take the node in; its name must be new."""
        legal_name(draft.name, "the node")
        for serde in (draft.key_serde, draft.value_serde):
            check_serde(serde, draft.name)
        if draft.name in self.drafts:
            raise TopologyError(f"Processor {draft.name} is already added.")
        self.drafts[draft.name] = draft
        return draft

    def add_store(
        self, draft: NodeDraft, name: str, kind: StoreKind, *, changelog: bool = True
    ) -> None:
        """Let the node keep its state under a store's name."""
        self.check_store(name)
        self.stores[name] = StoreSpec(
            name=name,
            kind=kind,
            node=draft.name,
            key_serde=draft.key_serde or self.default_key,
            changelog=changelog,
            is_global=draft.is_global,
        )
        draft.stores.append(name)
        draft.state = name

    def check_store(self, name: str) -> None:
        """TopologyError unless a store may have the name."""
        legal_name(name, "the store")
        if name in self.stores:
            raise TopologyError(f"StateStore {name} is already added.")

    def materialize(self, name: str) -> list[str]:
        """See to it that the table's rows can be read; the stores they are read from."""
        draft = self.drafts[name]
        if draft.state is None and draft.store_when_needed is not None:
            self.add_store(draft, draft.store_when_needed, "rows")
        if draft.state is not None and self.stores[draft.state].kind != "buffer":
            return [draft.state]
        own = [] if draft.state is None else [draft.state]
        return own + [store for parent in draft.rows_of for store in self.materialize(parent)]

    def send_old(self, name: str) -> None:
        """See to it that the table's changes tell the old row too."""
        draft = self.drafts[name]
        if draft.sends_old:
            return
        draft.sends_old = True
        if draft.store_when_needed is not None:
            self.materialize(name)
        for parent in draft.old_from:
            self.send_old(parent)

    def leads_to_null_keys(self, name: str) -> bool:
        """Whether a join below the node wants records without a key."""
        topics = self.drafts[name].topics if self.drafts[name].kind == "sink" else []
        below = [
            draft
            for draft in self.drafts.values()
            if name in draft.parents
            or (draft.kind == "source" and self.internal_topics.intersection(topics, draft.topics))
        ]
        return any(d.takes_null_keys or self.leads_to_null_keys(d.name) for d in below)

    def source_of(self, topics: tuple[str, ...]) -> str | None:
        """A stream's source of exactly these topics; a topic can have no second source."""
        for draft in self.drafts.values():
            if draft.kind == "source" and set(draft.topics) & set(topics):
                if draft.topics == list(topics) and not draft.is_table_source:
                    return draft.name
                topic = sorted(set(draft.topics) & set(topics))[0]
                raise TopologyError(f"Topic {topic} has already been registered by another source.")
        return None

    def build(self) -> StreamsTopology:
        """The plan."""
        if not any(draft.kind == "source" for draft in self.drafts.values()):
            raise TopologyError("a topology needs a source: call stream, table or global_table")
        return StreamsTopology(
            nodes=tuple(self._node(draft) for draft in self._in_order()),
            stores=tuple(self._store(store) for store in self.stores.values()),
            internal_topics=frozenset(self.internal_topics),
        )

    def _store(self, store: StoreSpec) -> StoreSpec:
        """The store with the serde of its values: its node's, or the one it was added with."""
        draft = self.drafts.get(store.node)
        given = store.value_serde if draft is None else draft.value_serde
        return replace(store, value_serde=given or self.default_value)

    def _in_order(self) -> list[NodeDraft]:
        """Parents before children, otherwise as added."""
        done: dict[str, NodeDraft] = {}
        waiting = list(self.drafts.values())
        while waiting:
            ready = [d for d in waiting if all(parent in done for parent in d.parents)]
            done |= {draft.name: draft for draft in ready}
            waiting = [draft for draft in waiting if draft.name not in done]
        return list(done.values())

    def _node(self, draft: NodeDraft) -> PlanNode:
        return PlanNode(
            name=draft.name,
            kind=draft.kind,
            parents=tuple(draft.parents),
            stores=tuple(dict.fromkeys(draft.stores)),
            topics=tuple(draft.topics),
            topic_of=draft.topic_of,
            intake=draft.intake,
            step=draft.make(draft),
            state=draft.state,
            table=draft.table,
            rows_of=draft.rows_of,
            branches=tuple(draft.branches),
            key_serde=draft.key_serde or self.default_key,
            value_serde=draft.value_serde or self.default_value,
            is_global=draft.is_global,
        )
