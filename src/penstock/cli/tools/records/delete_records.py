"""kafka-delete-records: cut records off the beginning of partitions, as a JSON file says."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from penstock.cli.bootstrap import add_bootstrap, add_command_config, admin_of
from penstock.cli.parser import ToolParser
from penstock.client.values import TopicPartition
from penstock.errors import CommandError, ProtocolError

_FORM = '{"partitions":[{"topic":"foo","partition":1,"offset":1}],"version":1}'


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    parser.required(options, "bootstrap-server", "offset-json-file")
    wanted = parse_offsets(_text_of(options.offset_json_file))
    with admin_of(parser, options) as admin:
        print("Executing records delete operation", flush=True)
        results = admin.delete_records(wanted)
    print("Records delete operation completed:")
    for partition, result in results.items():
        if isinstance(result, ProtocolError):
            print(f"partition: {partition}\terror: {type(result).__name__}: {result}")
        else:
            print(f"partition: {partition}\tlow_watermark: {result}")
    return 0  # As Kafka's tool: what became of each partition stands in its line.


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """The partitions and offsets of a file, each partition once."""
    try:
        document = json.loads(text)
        entries = [
            (TopicPartition(str(e["topic"]), int(e["partition"])), int(e["offset"]))
            for e in document["partitions"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"The offset json file is not of the form {_FORM}") from error
    if document.get("version", 1) != 1:
        raise CommandError(f"Not supported version field value {document['version']}")
    twice = [str(at) for at, count in Counter(at for at, _ in entries).items() if count > 1]
    if twice:
        raise CommandError(
            f"Offset json file contains duplicate topic partitions: {','.join(sorted(twice))}"
        )
    return dict(entries)


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError as error:
        raise CommandError(f"Cannot read {file}: {error.strerror}.") from error


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-delete-records",
        "This tool helps to delete records of the given partitions down to the specified offset.",
    )
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument(
        "--offset-json-file",
        metavar="Offset json file path",
        help=f"REQUIRED: The JSON file with offset per partition. The format to use is:\n{_FORM}",
    )
    return parser
