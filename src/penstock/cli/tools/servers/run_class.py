"""kafka-run-class: old texts run tools by the name of their Java class."""

from collections.abc import Sequence

from penstock.cli.main import run, tool_named
from penstock.errors import CommandError

# By the last part of the class name, which has outlived several packages.
_TOOLS = {
    "Kafka": "server",
    "TopicCommand": "topics",
    "ConfigCommand": "configs",
    "AclCommand": "acls",
    "DelegationTokenCommand": "delegation-tokens",
    "ConsoleProducer": "console-producer",
    "ConsoleConsumer": "console-consumer",
    "GetOffsetShell": "get-offsets",
    "DumpLogSegments": "dump-log",
    "LogDirsCommand": "log-dirs",
    "ReassignPartitionsCommand": "reassign-partitions",
    "LeaderElectionCommand": "leader-election",
    "PreferredReplicaLeaderElectionCommand": "preferred-replica-election",
    "ReplicaVerificationTool": "replica-verification",
    "DeleteRecordsCommand": "delete-records",
    "BrokerApiVersionsCommand": "broker-api-versions",
    "ProducerPerformance": "producer-perf-test",
    "ConsumerPerformance": "consumer-perf-test",
    "ConsumerGroupCommand": "consumer-groups",
    "GroupsCommand": "groups",
    "TransactionsCommand": "transactions",
    "VerifiableProducer": "verifiable-producer",
    "VerifiableConsumer": "verifiable-consumer",
    "StorageTool": "storage",
    "ConnectDistributed": "connect-distributed",
    "ConnectStandalone": "connect-standalone",
    "MirrorMaker": "mirror",
    "StreamsResetter": "streams-application-reset",
    "ZkSecurityMigrator": "zookeeper-security-migration",
}


def main(argv: Sequence[str]) -> int:
    words = [word for word in argv if word not in ("-daemon", "-loggc")]
    if not words or words[0] in ("--help", "-h"):
        print("USAGE: kafka-run-class CLASS [opts], where CLASS is one of:")
        for name in sorted(_TOOLS):
            print(f"  {name}")
        return 0 if words else 1
    tool = tool_named(_TOOLS.get(words[0].rpartition(".")[2], ""))
    if tool is None:
        raise CommandError(f"There is no tool for the class {words[0]}.")
    return run(tool, words[1:])
