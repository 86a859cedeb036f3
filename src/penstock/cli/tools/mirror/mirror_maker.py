"""kafka-mirror-maker, the first MirrorMaker: two files of clients and a pattern of topics.

Topics keep their names, and the source's partition is the target's. Copying is that of
`penstock mirror`, so nothing is lost or doubled; how far it came is kept on the target.
"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.cli.parser import ToolParser, settings_from
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.mirror.config import MirrorConfig

_USAGE = (
    "This tool helps to continuously copy data between two Kafka clusters.\n"
    "kafka-mirror-maker --consumer.config FILE --producer.config FILE --include PATTERN"
)
_LATEST = "latest"


def main(argv: Sequence[str]) -> int:
    from penstock.cli.tools.mirror.mirror import run_mirror

    options = options_of(argv)
    return run_mirror(config_of(options), options)


def options_of(argv: Sequence[str]) -> argparse.Namespace:
    """The words of a command line; one that cannot be meant is refused."""
    parser = _parser()
    options = parser.parse(argv)
    for name in ("consumer.config", "producer.config"):
        if getattr(options, name) is None:
            parser.error(parser.missing.format(name))
    if (options.include is None) == (options.whitelist is None):
        parser.error("Say which topics to copy, by --include alone.")
    if options.num_streams < 1:
        parser.error("--num.streams must be at least 1.")
    return options


def config_of(options: argparse.Namespace) -> "MirrorConfig":
    """The flow that the two files mean."""
    from penstock.mirror.config import MirrorConfig

    consumer = settings_from(getattr(options, "consumer.config"))
    producer = settings_from(getattr(options, "producer.config"))
    for name, settings in (("consumer.config", consumer), ("producer.config", producer)):
        if not settings.get("bootstrap.servers"):
            raise ConfigError(f"--{name}: bootstrap.servers is missing: write host:port.")
    consumer.setdefault("auto.offset.reset", _LATEST)
    return MirrorConfig.of(
        {
            "clusters": "source, target",
            "source->target.enabled": "true",
            "source->target.topics": options.include or options.whitelist,
            "replication.policy.class": "IdentityReplicationPolicy",
            "replication.factor": "-1",
            "tasks.max": str(options.num_streams),
            "sync.topic.configs.enabled": "false",
            "sync.topic.acls.enabled": "false",
            "emit.checkpoints.enabled": "false",
            "emit.offset-syncs.enabled": "false",
            "emit.heartbeats.enabled": "false",
            "heartbeats.replication.enabled": "false",
            "refresh.topics.interval.seconds": "30",
            **{f"source.{name}": consumer[name] for name in consumer if _is_general(name)},
            **{f"source.consumer.{name}": value for name, value in consumer.items()},
            **{f"target.{name}": producer[name] for name in producer if _is_general(name)},
            **{f"target.producer.{name}": value for name, value in producer.items()},
        }
    )


def _is_general(name: str) -> bool:
    """Whether a setting concerns every client of the cluster."""
    return name in ("bootstrap.servers", "security.protocol") or name.startswith(("ssl.", "sasl."))


def _parser() -> ToolParser:
    from penstock.cli.tools.mirror.mirror import add_spark_options

    parser = ToolParser("kafka-mirror-maker", _USAGE)
    for name, text in (
        ("consumer.config", "Properties of the consumer of the source cluster."),
        ("producer.config", "Properties of the producer of the target cluster."),
    ):
        parser.add_argument(f"--{name}", dest=name, metavar="file", help=text)
    parser.add_argument("--include", metavar="pattern", help="The topics to copy, as a pattern.")
    parser.add_argument("--whitelist", metavar="pattern", help="The same, by its old name.")
    parser.add_argument(
        "--num.streams",
        dest="num_streams",
        metavar="n",
        type=int,
        default=1,
        help="How many tasks copy; 1 if not said.",
    )
    add_spark_options(parser)
    return parser
