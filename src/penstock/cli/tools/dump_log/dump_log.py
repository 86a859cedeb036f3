"""kafka-dump-log: prints the files of a data directory, without a broker.

Which printer a file gets is told by its name: segments, their indexes, producer snapshots.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser
from penstock.cli.tools.dump_log import indexes as dump_log_indexes
from penstock.cli.tools.dump_log.batches import BatchPrinter
from penstock.cli.tools.dump_log.decoders import (
    Decode,
    group_record,
    plain,
    share_state_record,
    transaction_record,
)
from penstock.errors import CommandError

_INT_MAX = 2**31 - 1


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    parser.required(options, "files")
    faults = dump_log_indexes.Faults()
    for name in options.files.split(","):
        path = Path(name.strip())
        print(f"Dumping {path}")
        if not path.is_file():
            raise CommandError(f"There is no file {path}.")
        _dump(path, options, faults)
    faults.print()
    return 0


def _dump(path: Path, options: argparse.Namespace, faults: dump_log_indexes.Faults) -> None:
    if path.suffix in (".log", ".deleted", ".cleaned", ".swap"):
        _start_of(path)
        printer = BatchPrinter(
            decode=_decoder(options),
            deep=options.deep_iteration or _prints_data(options),
            data=_prints_data(options),
            metadata=not options.skip_record_metadata,
            bytes_max=options.max_bytes,
        )
        faults.gaps[str(path)] = printer.print(path)
    elif path.suffix == ".index":
        dump_log_indexes.offset_index(path, _start_of(path), options, faults)
    elif path.suffix == ".timeindex":
        dump_log_indexes.time_index(path, _start_of(path), options, faults)
    elif path.suffix == ".txnindex":
        dump_log_indexes.transaction_index(path)
    elif path.suffix == ".snapshot":
        dump_log_indexes.producer_snapshot(path)
    else:
        print(f"Ignoring unknown file {path}")


def _start_of(path: Path) -> int:
    """The offset that the name of a segment's file begins with."""
    digits = path.name.partition(".")[0]
    if not digits.isdigit():
        raise CommandError(f"{path} is not named after an offset, as files of segments are.")
    return int(digits)


def _prints_data(options: argparse.Namespace) -> bool:
    return any(getattr(options, name) for name in _DATA)


_DATA = (
    "print_data_log",
    "offsets_decoder",
    "transaction_log_decoder",
    "share_group_state_decoder",
    "key_decoder_class",
    "value_decoder_class",
)


def _decoder(options: argparse.Namespace) -> Decode:
    if options.cluster_metadata_decoder or options.remote_log_metadata_decoder:
        raise CommandError(
            "Penstock keeps neither KRaft metadata nor remote log metadata in topics, so it has "
            "no decoder for them."
        )
    if options.offsets_decoder:
        return group_record
    if options.transaction_log_decoder:
        return transaction_record
    if options.share_group_state_decoder:
        return share_state_record
    return plain(options.key_decoder_class, options.value_decoder_class)


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-dump-log",
        "This tool helps to parse a log file and dump its contents to the console, useful for "
        "debugging a seemingly corrupt log segment.",
    )
    option, flag = parser.add_argument, parser.flag
    option(
        "--files",
        metavar="file1, file2, ...",
        help="REQUIRED: The comma separated list of data and index log files to be dumped.",
    )
    flag("print-data-log", "Print the messages content when dumping data logs.")
    flag("deep-iteration", "Print each record, not only each batch.")
    flag("skip-record-metadata", "Skip metadata when printing records, and control records.")
    flag("index-sanity-check", "Only check that indexes are sane, without printing them.")
    flag("verify-index-only", "Only verify indexes against their log, without printing them.")
    flag("offsets-decoder", "Parse log data as offset data of the __consumer_offsets topic.")
    flag("transaction-log-decoder", "Parse log data as data of the __transaction_state topic.")
    flag("share-group-state-decoder", "Parse log data as data of the __share_group_state topic.")
    flag("cluster-metadata-decoder", "Parse log data as cluster metadata records.")
    flag("remote-log-metadata-decoder", "Parse log data as remote log metadata.")
    option(
        "--max-bytes",
        type=int,
        default=_INT_MAX,
        metavar="size",
        help="Read at most so many bytes of each .log file.",
    )
    option("--max-message-size", type=int, metavar="size", help="Accepted; there is no limit.")
    for name in ("key", "value"):
        option(
            f"--{name}-decoder-class",
            nargs="?",
            const="string",
            metavar="class",
            help=f"How to read the {name}s: string, long, integer, ... (default: string)",
        )
    return parser
