"""kafka-leader-election: the preferred leader for partitions, or any at all where none is left."""

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.cli.bootstrap import add_bootstrap, admin_of
from penstock.cli.parser import ToolParser, warn_deprecated
from penstock.cli.sentences import sentence
from penstock.client.admin import Admin
from penstock.client.errors import KafkaTimeoutError
from penstock.client.operations.elections import ElectionType
from penstock.client.values import TopicPartition
from penstock.errors import (
    ClusterAuthorization,
    CommandError,
    ElectionNotNeeded,
    ProtocolError,
    RequestTimedOut,
)

_ONE_OF = ("topic", "all-topic-partitions", "path-to-json-file")
_FORM = '{"partitions":[{"topic": "foo", "partition": 1}]}'


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    _check(parser, options)
    warn_deprecated(options, {"admin.config": "command-config"})
    options.command_config = options.command_config or options.admin_config
    election = ElectionType[options.election_type.upper()]
    with admin_of(parser, options) as admin:
        return elect(admin, election, _wanted(options), words=f"leader election ({election.name})")


def elect(
    admin: Admin,
    election: ElectionType,
    partitions: Sequence[TopicPartition] | None,
    *,
    words: str,
) -> int:
    """Hold the elections and tell how they went; 1 if any failed."""
    try:
        results = admin.elect_leaders(election, partitions)
    except (KafkaTimeoutError, RequestTimedOut) as error:
        raise CommandError("Timeout waiting for election results") from error
    except ClusterAuthorization as error:
        raise CommandError("Not authorized to perform leader election") from error
    for line in result_lines(results, words):
        print(line)
    failed = sum(_is_failure(result) for result in results.values())
    if failed:
        raise CommandError(f"{failed} replica(s) could not be elected")
    return 0


def result_lines(results: Mapping[TopicPartition, ProtocolError | None], words: str) -> list[str]:
    """What became of each partition, in Kafka's sentences."""
    lines = []
    elected = [at for at in sorted(results) if results[at] is None]
    if elected:
        lines.append(f"Successfully completed {words} for partitions {_joined(elected)}")
    unneeded = [at for at in sorted(results) if isinstance(results[at], ElectionNotNeeded)]
    if unneeded:
        lines.append(f"Valid replica already elected for partitions {_joined(unneeded)}")
    for at in sorted(results):
        error = results[at]
        if error is not None and _is_failure(error):
            what = f"{type(error).__name__}: {sentence(error)}"
            lines.append(f"Error completing {words} for partition: {at}: {what}")
    return lines


def parse_partitions(text: str) -> list[TopicPartition]:
    """The partitions of a file, each once."""
    try:
        document = json.loads(text)
    except ValueError:
        raise CommandError("Replica election data is not valid JSON") from None
    if not isinstance(document, dict) or "partitions" not in document:
        raise CommandError('Replica election data is missing "partitions" field')
    try:
        found = [
            TopicPartition(str(e["topic"]), int(e["partition"])) for e in document["partitions"]
        ]
    except (KeyError, TypeError, ValueError):
        raise CommandError(f"Replica election data is not of the form {_FORM}") from None
    if not found:
        raise CommandError("Replica election data is empty")
    twice = sorted(at for at, count in Counter(found).items() if count > 1)
    if twice:
        listed = ",".join(str(at) for at in twice)
        raise CommandError(f"Replica election data contains duplicate partitions: {listed}")
    return found


def partitions_in(file: str) -> list[TopicPartition]:
    """The partitions that a file names."""
    try:
        return parse_partitions(Path(file).read_text())
    except OSError as error:
        raise CommandError(f"Cannot read {file}: {error.strerror}.") from error


def _wanted(options: argparse.Namespace) -> list[TopicPartition] | None:
    if options.path_to_json_file:
        return partitions_in(options.path_to_json_file)
    if options.topic:
        return [TopicPartition(options.topic, options.partition)]
    return None


def _is_failure(result: ProtocolError | None) -> bool:
    return result is not None and not isinstance(result, ElectionNotNeeded)


def _joined(partitions: Sequence[TopicPartition]) -> str:
    return ", ".join(str(at) for at in partitions)


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    given = [name for name in _ONE_OF if getattr(options, name.replace("-", "_"))]
    if options.election_type is None:
        parser.error("Missing required option(s): election-type")
    if len(given) != 1:
        parser.error(f"One and only one of the following options is required: {', '.join(_ONE_OF)}")
    if options.topic and options.partition is None:
        parser.error("Missing required option(s): partition")
    if options.partition is not None and not options.topic:
        parser.error("Option partition is only allowed if topic is used")


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-leader-election",
        "This tool attempts to elect a new leader for a set of topic partitions. The type of "
        "elections supported are preferred replicas and unclean replicas.",
    )
    add_bootstrap(parser, zookeeper=True)
    option = parser.add_argument
    option(
        "--command-config",
        metavar="Config file",
        help="Property file containing settings of the client.",
    )
    option(
        "--admin.config",
        dest="admin_config",
        metavar="config file",
        help="(DEPRECATED) Use --command-config instead.",
    )
    option(
        "--election-type",
        type=str.lower,
        choices=[election.name.lower() for election in ElectionType],
        metavar="[PREFERRED,UNCLEAN]",
        help="REQUIRED: preferred gives partitions their first replica as leader, if it is in "
        "sync. unclean gives those without a leader any replica that is alive: records that were "
        "acknowledged may be lost.",
    )
    option("--topic", metavar="topic name", help="The topic of the partition to elect for.")
    option("--partition", type=int, metavar="partition id", help="REQUIRED with --topic.")
    parser.flag("all-topic-partitions", "Hold elections for every partition that needs one.")
    option(
        "--path-to-json-file",
        metavar="Path to JSON file",
        help=f"The JSON file with the partitions to elect for. The format to use is:\n{_FORM}",
    )
    return parser
