"""The front door of all commands: finds the tool that was asked for and runs it.

`penstock topics ...`, `kafka-topics ...` and `kafka-topics.sh ...` are the same tool. Only the
tool that runs is imported, so a broker starts without paying for the clients. An error becomes one
sentence on stderr and exit code 1, here and nowhere else.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple, cast


class Tool(NamedTuple):
    """A command: its name behind `penstock`, where it is, its names of its own, what it is for."""

    name: str
    place: str  # Below penstock.cli.tools.
    commands: tuple[str, ...]
    summary: str

    @property
    def module(self) -> str:
        return f"penstock.cli.tools.{self.place}"


TOOLS = (
    Tool("up", "platform.up", (), "start broker, schema registry and REST proxy"),
    Tool("down", "platform.down", (), "stop what `penstock up` started"),
    Tool("status", "platform.status", (), "show what `penstock up` has running"),
    Tool("services", "platform.services", (), "run registry and REST proxy in one process"),
    Tool("server", "servers.server", ("kafka-server-start",), "start a broker"),
    Tool(
        "server-stop",
        "servers.server_stop",
        ("kafka-server-stop",),
        "stop the brokers of this machine",
    ),
    Tool(
        "zookeeper", "zookeeper.zookeeper", ("zookeeper-server-start",), "start a ZooKeeper server"
    ),
    Tool(
        "zookeeper-stop",
        "zookeeper.zookeeper_stop",
        ("zookeeper-server-stop",),
        "stop the ZooKeeper servers of this machine",
    ),
    Tool(
        "zookeeper-shell",
        "zookeeper.zookeeper_shell",
        ("zookeeper-shell",),
        "look at the nodes in ZooKeeper, change them",
    ),
    Tool(
        "zookeeper-security-migration",
        "zookeeper.security_migration",
        ("zookeeper-security-migration",),
        "keep the nodes in ZooKeeper from others, or open them",
    ),
    Tool(
        "topics",
        "topics.topics",
        ("kafka-topics",),
        "create, list, describe, alter and delete topics",
    ),
    Tool(
        "console-producer",
        "records.console_producer",
        ("kafka-console-producer",),
        "send the lines of standard input",
    ),
    Tool(
        "console-consumer",
        "records.console_consumer",
        ("kafka-console-consumer",),
        "print the records of a topic",
    ),
    Tool(
        "consumer-groups",
        "groups.consumer_groups",
        ("kafka-consumer-groups",),
        "list, describe and reset groups",
    ),
    Tool("groups", "groups.groups", ("kafka-groups",), "list groups of all kinds"),
    Tool(
        "transactions",
        "transactions.transactions",
        ("kafka-transactions",),
        "show transactions and end those that hang",
    ),
    Tool(
        "get-offsets",
        "records.get_offsets",
        ("kafka-get-offsets",),
        "print first, last or timed offsets",
    ),
    Tool("secure", "security.secure", (), "make keys and users for a secured cluster"),
    Tool("acls", "security.acls", ("kafka-acls",), "show, add and remove access rules"),
    Tool(
        "configs",
        "configs.configs",
        ("kafka-configs",),
        "show and change settings of topics and brokers",
    ),
    Tool(
        "delegation-tokens",
        "security.delegation_tokens",
        ("kafka-delegation-tokens",),
        "create, renew, end and show delegation tokens",
    ),
    Tool(
        "storage",
        "security.storage",
        ("kafka-storage",),
        "make a data directory ready, with users that can log in at once",
    ),
    Tool(
        "dump-log", "dump_log.dump_log", ("kafka-dump-log",), "print the files of a data directory"
    ),
    Tool(
        "log-dirs",
        "replicas.log_dirs",
        ("kafka-log-dirs", "kafka-log-dir"),
        "show the use of data directories",
    ),
    Tool(
        "reassign-partitions",
        "replicas.reassign_partitions",
        ("kafka-reassign-partitions",),
        "move partitions to other brokers",
    ),
    Tool(
        "leader-election",
        "replicas.leader_election",
        ("kafka-leader-election",),
        "give partitions their preferred leader",
    ),
    Tool(
        "preferred-replica-election",
        "replicas.preferred_replica_election",
        ("kafka-preferred-replica-election",),
        "the same, by its old name",
    ),
    Tool(
        "replica-verification",
        "replicas.replica_verification",
        ("kafka-replica-verification", "kafka-replica-validation"),
        "compare what the replicas of partitions hold",
    ),
    Tool("cluster", "cluster.cluster", (), "run a cluster on this machine, see how a cluster is"),
    Tool(
        "delete-records",
        "records.delete_records",
        ("kafka-delete-records",),
        "delete records before an offset",
    ),
    Tool(
        "broker-api-versions",
        "cluster.broker_api_versions",
        ("kafka-broker-api-versions",),
        "show what brokers speak",
    ),
    Tool(
        "producer-perf-test",
        "load.producer_perf_test",
        ("kafka-producer-perf-test",),
        "measure how fast records go in",
    ),
    Tool(
        "consumer-perf-test",
        "load.consumer_perf_test",
        ("kafka-consumer-perf-test",),
        "measure how fast they come out",
    ),
    Tool(
        "verifiable-producer",
        "load.verifiable_producer",
        ("kafka-verifiable-producer",),
        "send numbers, tell in JSON",
    ),
    Tool(
        "verifiable-consumer",
        "load.verifiable_consumer",
        ("kafka-verifiable-consumer",),
        "read in a group, tell in JSON",
    ),
    Tool("dlq", "dlq.dlq", (), "list, show and replay records that could not be decoded"),
    Tool(
        "streams-application-reset",
        "groups.streams_application_reset",
        ("kafka-streams-application-reset",),
        "let a streams application begin again",
    ),
    Tool(
        "registry",
        "servers.registry",
        ("schema-registry-start",),
        "start a schema registry",
    ),
    Tool("rest", "servers.rest", ("kafka-rest-start",), "start a REST proxy"),
    Tool(
        "registry-stop",
        "servers.registry_stop",
        ("schema-registry-stop",),
        "stop the schema registries of this machine",
    ),
    Tool("connect", "connect.connect", (), "start a Connect worker, standalone or distributed"),
    Tool(
        "connect-standalone",
        "connect.standalone",
        ("connect-standalone",),
        "start a Connect worker with its connectors in files",
    ),
    Tool(
        "connect-distributed",
        "connect.distributed",
        ("connect-distributed",),
        "start a Connect worker with its connectors in topics",
    ),
    Tool("schema", "schema.schema", (), "register, compare, delete and move schemas"),
    Tool("lake", "pipelines.lake", (), "land topics in Delta, Iceberg and Parquet tables"),
    Tool("pipeline", "pipelines.pipeline", (), "run and watch pipelines on Spark"),
    Tool("streams", "pipelines.streams", (), "run topologies of Streams on Spark, and reset them"),
    Tool("sql", "sql.sql", ("ksql",), "ask a SQL service at a prompt, test scripts of SQL"),
    Tool("sql-server", "servers.sql_server", ("ksql-server-start",), "start a SQL server"),
    Tool(
        "mirror",
        "mirror.mirror",
        ("connect-mirror-maker",),
        "copy topics and groups to other clusters",
    ),
    Tool(
        "mirror-maker",
        "mirror.mirror_maker",
        ("kafka-mirror-maker",),
        "the same, as the first MirrorMaker had it",
    ),
    Tool("sql", "sql.sql", (), "test scripts of streaming SQL, and show how queries would run"),
    Tool("spark", "pipelines.spark", (), "start the master or a worker of a Spark cluster"),
    Tool(
        "run-class", "servers.run_class", ("kafka-run-class",), "run a tool by its Java class name"
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """`penstock COMMAND ...`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return _run_guarded(lambda: _penstock(arguments))


def kafka_tool() -> int:
    """A kafka-* command: the name it was called by says which."""
    command = os.path.basename(sys.argv[0])  # noqa: PTH119  (pathlib would slow every start)
    tool = tool_named(command)
    if tool is None:
        print(f"{command} is not a command of penstock.", file=sys.stderr)
        return 1
    return _run_guarded(lambda: run(tool, sys.argv[1:]))


def tool_named(name: str) -> Tool | None:
    """The tool of a name such as topics, kafka-topics or kafka-topics.sh."""
    name = name.removesuffix(".sh")
    return next((tool for tool in TOOLS if name == tool.name or name in tool.commands), None)


def run(tool: Tool, arguments: Sequence[str]) -> int:
    """Import a tool and run it; what it raises is for the caller."""
    main_of_tool = cast(Callable[[Sequence[str]], int], import_module(tool.module).main)
    return main_of_tool(arguments)


def _penstock(arguments: list[str]) -> int:
    if not arguments:
        print(_overview(), file=sys.stderr)
        return 1
    name = arguments[0]
    if name in ("--help", "-h", "help"):
        print(_overview())
        return 0
    if name == "--version":
        from penstock import __version__

        print(f"penstock {__version__}")
        return 0
    tool = tool_named(name)
    if tool is None:
        print(f"penstock has no command {name!r}; `penstock --help` lists them.", file=sys.stderr)
        return 1
    return run(tool, arguments[1:])


def _run_guarded(command: Callable[[], int]) -> int:
    """Turn what a command raises into a sentence and an exit code."""
    from penstock.errors import PenstockError

    try:
        code = command()
        sys.stdout.flush()
    except PenstockError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does. Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


def _overview() -> str:
    width = max(len(tool.name) for tool in TOOLS)
    lines = [f"  {tool.name:<{width}}  {tool.summary}" for tool in TOOLS]
    return "\n".join(
        [
            "usage: penstock COMMAND [OPTIONS]",
            "",
            "Event streaming that any Kafka client takes for Kafka.",
            "",
            *lines,
            "",
            "`penstock COMMAND --help` tells the options of one. The commands that Kafka has are",
            "installed under Kafka's names too: kafka-topics, kafka-console-producer, ...",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
