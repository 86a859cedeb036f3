"""mm2.properties as MirrorMaker 2 has it: clusters, flows between them, and what each flow does.

A setting stands for all flows, or for one as `A->B.NAME`; settings of clients stand for a cluster
as `A.NAME`, or for one kind of client of it as `A.consumer.NAME`. Everything that is wrong is told
at once. What has a meaning for Connect's workers alone is passed over and named in `unused`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from penstock.errors import ConfigError
from penstock.mirror.choice import NameFilter, pattern_error, split_list
from penstock.mirror.policies import IdentityPolicy, PrefixPolicy, ReplicationPolicy

ARROW = "->"
_PACKAGE = "org.apache.kafka.connect.mirror."
_POLICIES: dict[str, type[PrefixPolicy] | type[IdentityPolicy]] = {
    "DefaultReplicationPolicy": PrefixPolicy,
    "IdentityReplicationPolicy": IdentityPolicy,
}
_TOPICS_EXCLUDE = r"mm2.*\.internal, .*\.replica, __.*"
_GROUPS_EXCLUDE = "console-consumer-.*, connect-.*, __.*"
_CONFIGS_EXCLUDE = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.before\.max\.ms, "
    r"message\.timestamp\.after\.max\.ms, message\.timestamp\.type, "
    r"unclean\.leader\.election\.enable, min\.insync\.replicas"
)
# Old names of settings, which files still have.
_OLD_NAMES = {
    "topics.exclude": ("topics.blacklist",),
    "groups.exclude": ("groups.blacklist",),
    "config.properties.exclude": ("config.properties.blacklist",),
}
_ROLES = ("consumer", "producer", "admin")
# What a client of ours understands, whoever it is for.
_CLIENT = (
    "bootstrap.servers",
    "client.id",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "retry.backoff.ms",
    "security.protocol",
)
_CLIENT_FAMILIES = ("ssl.", "sasl.")
_OF_ROLE = {
    "consumer": (
        "auto.offset.reset",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "isolation.level",
        "max.partition.fetch.bytes",
    ),
    "producer": ("delivery.timeout.ms", "max.request.size", "transaction.timeout.ms"),
    "admin": (),
}
_CHOICES = {
    "isolation.level": ("read_committed", "read_uncommitted"),
    "auto.offset.reset": ("earliest", "latest"),
}
_WHOLE_NUMBERS = {
    "request.timeout.ms",
    "default.api.timeout.ms",
    "retry.backoff.ms",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "max.partition.fetch.bytes",
    "delivery.timeout.ms",
    "max.request.size",
    "transaction.timeout.ms",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One direction between two clusters, and what is done in it."""

    source: str
    target: str
    policy: ReplicationPolicy
    topics: NameFilter
    groups: NameFilter
    configs_excluded: NameFilter
    tasks_max: int = 1
    replication_factor: int | None = None  # None: two, or as many as the target has brokers.
    internal_replication_factor: int | None = None  # None: three, or the same.
    sync_topic_configs: bool = True
    sync_topic_acls: bool = True
    sync_group_offsets: bool = False
    sync_group_offsets_back: bool = False
    emit_checkpoints: bool = True
    emit_offset_syncs: bool = True
    are_syncs_on_source: bool = True
    takes_heartbeats: bool = True
    refresh_topics_s: int | None = 600  # None: only at the start.
    refresh_groups_s: int | None = 600
    checkpoint_s: int = 60
    group_sync_s: int = 60
    transaction_ms: int = 500

    @property
    def name(self) -> str:
        """`A->B`."""
        return f"{self.source}{ARROW}{self.target}"

    @property
    def positions_group(self) -> str:
        """The group on the target whose offsets say how far the source was copied."""
        return f"__mirror-{self.source}-{self.target}"

    def transactional_id(self, task: int | str) -> str:
        """The id that fences all earlier attempts at a task of this flow."""
        return f"mirror-{self.source}-{self.target}-{task}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """Heartbeats that are written to a cluster, told apart by the cluster that they name first."""

    source: str
    target: str
    every_s: int
    replication_factor: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorConfig:
    """All that one file says."""

    clusters: Mapping[str, Mapping[str, Mapping[str, str]]]  # Alias, role, settings.
    flows: tuple[Flow, ...]
    beats: tuple[Beat, ...] = ()
    unused: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "MirrorConfig":
        """What a file's settings say; ConfigError names all that is wrong with them."""
        reading = _Reading(settings)
        config = reading.config()
        if reading.errors:
            raise ConfigError("\n".join(dict.fromkeys(reading.errors)))
        return config

    def client(self, alias: str, role: str) -> dict[str, str]:
        """The settings of one kind of client of a cluster."""
        return dict(self.clusters[alias][role])


@dataclass(slots=True)
class _Reading:
    """One pass over the settings, which notes what was used and what was wrong."""

    settings: Mapping[str, str]
    errors: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def config(self) -> MirrorConfig:
        aliases = self._aliases()
        flows = [self._flow(a, b) for a, b in _pairs(aliases) if self._is_enabled(a, b)]
        if aliases and not flows and not self.errors:
            self.errors.append("No flow is enabled: set, for example, A->B.enabled=true.")
        self._check_arrows(aliases)
        self._check_circles(flows)
        clusters = {alias: self._clients(alias) for alias in aliases}
        beats = tuple(self._beats(aliases))
        unused = tuple(sorted(set(self.settings) - self.used))
        return MirrorConfig(clusters=clusters, flows=tuple(flows), beats=beats, unused=unused)

    def _aliases(self) -> tuple[str, ...]:
        aliases = split_list(self._text("clusters", "") or "")
        if len(set(aliases)) < 2:
            self.errors.append(
                "clusters must name at least two clusters: clusters = A, B, "
                "and A.bootstrap.servers and B.bootstrap.servers where they are."
            )
        for alias in aliases:
            if ARROW in alias or " " in alias:
                self.errors.append(f"clusters: {alias!r} cannot be the name of a cluster.")
        return tuple(dict.fromkeys(aliases))

    def _is_enabled(self, source: str, target: str) -> bool:
        return self._flag(f"{source}{ARROW}{target}.enabled", "enabled", default=False)

    def _flow(self, source: str, target: str) -> Flow:
        at = f"{source}{ARROW}{target}."
        factors = [
            self._number(at, name, None, least=1)
            for name in (
                "offset-syncs.topic.replication.factor",
                "checkpoints.topic.replication.factor",
            )
        ]
        given = [factor for factor in factors if factor is not None]
        return Flow(
            source=source,
            target=target,
            policy=self._policy(at),
            topics=self._filter(at, "topics", ".*", _TOPICS_EXCLUDE),
            groups=self._filter(at, "groups", ".*", _GROUPS_EXCLUDE),
            configs_excluded=self._filter(at, "config.properties", "", _CONFIGS_EXCLUDE),
            tasks_max=self._number(at, "tasks.max", 1, least=1) or 1,
            replication_factor=self._factor(at, "replication.factor"),
            internal_replication_factor=min(given, default=None),
            sync_topic_configs=self._flow_flag(at, "sync.topic.configs.enabled", default=True),
            sync_topic_acls=self._flow_flag(at, "sync.topic.acls.enabled", default=True),
            sync_group_offsets=self._flow_flag(at, "sync.group.offsets.enabled", default=False),
            sync_group_offsets_back=self._flow_flag(
                at, "sync.group.offsets.back.enabled", default=False
            ),
            emit_checkpoints=self._flow_flag(at, "emit.checkpoints.enabled", default=True),
            emit_offset_syncs=self._flow_flag(at, "emit.offset-syncs.enabled", default=True),
            are_syncs_on_source=self._choice(
                at, "offset-syncs.topic.location", ("source", "target")
            )
            == "source",
            takes_heartbeats=self._flow_flag(at, "heartbeats.replication.enabled", default=True),
            refresh_topics_s=self._refresh(at, "topics"),
            refresh_groups_s=self._refresh(at, "groups"),
            checkpoint_s=self._number(at, "emit.checkpoints.interval.seconds", 60, least=1) or 60,
            group_sync_s=self._number(at, "sync.group.offsets.interval.seconds", 60, least=1) or 60,
            transaction_ms=self._number(at, "transaction.boundary.interval.ms", 500, least=1)
            or 500,
        )

    def _factor(self, at: str, name: str) -> int | None:
        """A replication factor; -1 leaves it to the target's own default."""
        factor = self._number(at, name, None, least=-1)
        if factor == 0:
            self.errors.append(f"{name}=0 cannot be: write a number of replicas, or -1.")
        return factor

    def _refresh(self, at: str, what: str) -> int | None:
        is_on = self._flow_flag(at, f"refresh.{what}.enabled", default=True)
        every_s = self._number(at, f"refresh.{what}.interval.seconds", 600, least=1)
        return every_s if is_on else None

    def _policy(self, at: str) -> ReplicationPolicy:
        name = self._flow_text(at, "replication.policy.class", "DefaultReplicationPolicy")
        separator = self._flow_text(at, "replication.policy.separator", ".")
        found = _POLICIES.get(name.removeprefix(_PACKAGE))
        if found is None:
            known = " or ".join(_PACKAGE + one for one in _POLICIES)
            self.errors.append(f"replication.policy.class={name} is not known here: write {known}.")
        if not separator:
            self.errors.append("replication.policy.separator must not be empty.")
        return (found or PrefixPolicy)(separator or ".")

    def _filter(self, at: str, name: str, included: str, excluded: str) -> NameFilter:
        chosen = split_list(self._flow_text(at, name, included) if included else "")
        left_out = split_list(self._flow_text(at, f"{name}.exclude", excluded))
        for key, entries in ((name, chosen), (f"{name}.exclude", left_out)):
            wrong = pattern_error(entries)
            if wrong is not None:
                self.errors.append(f"{key}: {wrong}.")
                return NameFilter(())
        return NameFilter(chosen, left_out) if included else NameFilter(left_out)

    def _beats(self, aliases: tuple[str, ...]) -> Iterator[Beat]:
        """As MirrorMaker 2 has them: into every cluster, from every other, unless switched off."""
        for source, target in _pairs(aliases):
            at = f"{source}{ARROW}{target}."
            every_s = self._number(at, "emit.heartbeats.interval.seconds", 1, least=1) or 1
            factor = self._number(at, "heartbeats.topic.replication.factor", None, least=1)
            if self._flow_flag(at, "emit.heartbeats.enabled", default=True):
                yield Beat(source=source, target=target, every_s=every_s, replication_factor=factor)

    def _clients(self, alias: str) -> dict[str, dict[str, str]]:
        if not self.settings.get(f"{alias}.bootstrap.servers", "").strip():
            self.errors.append(
                f"{alias}.bootstrap.servers is missing: write host:port of its brokers."
            )
        return {role: self._client(alias, role) for role in _ROLES}

    def _client(self, alias: str, role: str) -> dict[str, str]:
        """From the general to the particular: for all clusters, for this one, for this role."""
        found: dict[str, str] = {}
        for prefix in ("", f"{role}.", f"{alias}.", f"{alias}.{role}."):
            for key, value in self.settings.items():
                name = key.removeprefix(prefix)
                if key.startswith(prefix) and _is_known(name, role) and _is_placed(prefix, name):
                    self.used.add(key)
                    self._check_client(key, name, value)
                    found[name] = value.strip()
        return found

    def _check_client(self, key: str, name: str, value: str) -> None:
        if name in _WHOLE_NUMBERS and not value.strip().isdigit():
            self.errors.append(f"{key}={value} is not a number.")
        choices = _CHOICES.get(name)
        if choices and value.strip() not in choices:
            self.errors.append(f"{key}={value} is not one of {', '.join(choices)}.")

    def _check_arrows(self, aliases: tuple[str, ...]) -> None:
        """A flow between clusters that nobody named is a slip of the pen."""
        known = {f"{a}{ARROW}{b}" for a, b in _pairs(aliases)}
        for key in self.settings:
            head, arrow, rest = key.partition(ARROW)
            if not arrow:
                continue
            flow = next((one for one in known if key.startswith(f"{one}.")), None)
            if flow is None and aliases:
                self.errors.append(
                    f"{key} is about a flow from {head!r} to {rest.partition('.')[0]!r}; "
                    f"clusters has {', '.join(aliases)}."
                )

    def _check_circles(self, flows: list[Flow]) -> None:
        """Where names stay the same, records would go round for ever."""
        same = [flow for flow in flows if isinstance(flow.policy, IdentityPolicy)]
        for flow in same:
            for way in _ways_back(flow, same, ()):
                shared = [one.topics.names for one in way]
                listed = [names for names in shared if names is not None]
                if len(listed) == len(shared) and not frozenset.intersection(*listed):
                    continue
                names = ", ".join(sorted(one.name for one in way))
                self.errors.append(
                    f"{names} are enabled with IdentityReplicationPolicy and may take the same "
                    "topics, so records would go in a circle: list topics of which none is in all "
                    "of them, or use DefaultReplicationPolicy."
                )

    def _flow_text(self, at: str, name: str, default: str) -> str:
        for key in (name, *_OLD_NAMES.get(name, ())):
            found = self._text(at + key, None)
            if found is None:
                found = self._text(key, None)
            if found is not None:
                return found
        return default

    def _flow_flag(self, at: str, name: str, *, default: bool) -> bool:
        return self._flag(at + name, name, default=default)

    def _flag(self, *keys: str, default: bool) -> bool:
        for key in keys:
            text = self._text(key, None)
            if text is None:
                continue
            if text.lower() not in ("true", "false"):
                self.errors.append(f"{key}={text} is neither true nor false.")
            return text.lower() == "true"
        return default

    def _number(self, at: str, name: str, default: int | None, *, least: int) -> int | None:
        text = self._flow_text(at, name, "")
        if not text:
            return default
        if not text.removeprefix("-").isdigit() or int(text) < least:
            self.errors.append(f"{name}={text} is not a whole number of at least {least}.")
            return default
        return int(text)

    def _choice(self, at: str, name: str, choices: tuple[str, ...]) -> str:
        text = self._flow_text(at, name, choices[0])
        if text not in choices:
            self.errors.append(f"{name}={text} is not one of {', '.join(choices)}.")
        return text

    def _text(self, key: str, default: str | None) -> str | None:
        if key not in self.settings:
            return default
        self.used.add(key)
        return self.settings[key].strip()


def _pairs(aliases: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(a, b) for a in aliases for b in aliases if a != b]


def _is_known(name: str, role: str) -> bool:
    return name in _CLIENT or name in _OF_ROLE[role] or name.startswith(_CLIENT_FAMILIES)


def _is_placed(prefix: str, name: str) -> bool:
    """Where brokers are is said for one cluster alone."""
    return bool(prefix) or name != "bootstrap.servers"


def _ways_back(flow: Flow, flows: list[Flow], before: tuple[Flow, ...]) -> Iterator[list[Flow]]:
    """Every way along flows from a flow's target to its source, each way once for a first flow."""
    way = (*before, flow)
    for after in flows:
        if after.source != flow.target:
            continue
        if after is way[0]:
            if way[0].name == min(one.name for one in way):
                yield list(way)
        elif after not in way:
            yield from _ways_back(after, flows, way)
