"""`penstock mirror`, Kafka's connect-mirror-maker: read mm2.properties, then mirror as it says."""

import argparse
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.parser import ToolParser, key_values, settings_from

if TYPE_CHECKING:
    from penstock.mirror.config import MirrorConfig

_USAGE = (
    "penstock mirror mm2.properties [--clusters B ...] [--master URL] [--status]\n"
    "Copy topics and groups between clusters, exactly once."
)
_SHOW_S = 10.0
# The virtual machine starts tasks and no more: records go through their Python processes.
_SMALL = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xms64m -XX:TieredStopAtLevel=1",
}
_DAEMON = {"spark.python.daemon.module": "penstock.mirror.running.daemon"}


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    if options.file is None:
        parser.error("Give the file of the mirror: penstock mirror mm2.properties")
    from penstock.mirror.config import MirrorConfig
    from penstock.mirror.running.supervisor import chosen_targets

    config = MirrorConfig.of(settings_from(options.file))
    config = chosen_targets(config, options.clusters or ())
    if options.status:
        return _show(config)
    return run_mirror(config, options)


def run_mirror(config: "MirrorConfig", options: argparse.Namespace) -> int:
    """Mirror until SIGTERM or SIGINT; then stop in good order."""
    from penstock.cli.stopping import stop_on_signals
    from penstock.mirror.running.hosts import SparkTaskHost
    from penstock.mirror.running.supervisor import slots_of, supervise
    from penstock.queries.engine import Engine, EngineFailed
    from penstock.spark.start.worker_start import is_local
    from penstock.telemetry.logs import set_up_logging

    stop = stop_on_signals()
    set_up_logging()
    if config.unused:
        _report(f"These settings mean nothing to this mirror: {', '.join(config.unused)}.")
    master = options.master or f"local[{slots_of(config)}]"
    own = {**_SMALL, **(_DAEMON if is_local(master) else {})}
    try:
        engine = Engine.start(
            "penstock mirror",
            master=master,
            conf={**own, **key_values(options.conf or [], "--conf")},
            log=Path(options.state or "~/.penstock").expanduser() / "mirror-spark.log",
            stop=stop,
        )
    except EngineFailed:
        if stop.is_set():
            return 0
        raise
    names = ", ".join(flow.name for flow in config.flows)
    _report(f"Mirroring {names} with {slots_of(config)} tasks at most.")
    threading.Thread(target=_tell, args=(config, stop), daemon=True, name="progress").start()
    try:
        supervise(config, SparkTaskHost(engine.spark), _report, stop)
    finally:
        engine.stop()
    _report("Stopped; what was not committed is copied again by the next run.")
    return 0


def _tell(config: "MirrorConfig", stop: threading.Event) -> None:
    """Print how far the mirror is, whenever that has changed."""
    from penstock.errors import PenstockError
    from penstock.mirror.progress import progress_of, table_of

    before = ""
    while not stop.wait(_SHOW_S):
        try:
            text = table_of(one for flow in config.flows for one in progress_of(config, flow))
        except (PenstockError, OSError):
            continue  # A cluster is away; the flows themselves tell so.
        if text != before:
            print(text, flush=True)
        before = text


def _show(config: "MirrorConfig") -> int:
    from penstock.mirror.progress import progress_of, table_of

    print(table_of(one for flow in config.flows for one in progress_of(config, flow)))
    return 0


def _report(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def add_spark_options(parser: ToolParser) -> None:
    """How Spark is started."""
    parser.add_argument(
        "--master",
        metavar="url",
        help="Where Spark runs: local[8], spark://host:port; this machine if not said.",
    )
    parser.add_argument(
        "--conf", metavar="key=value", action="append", help="A setting of Spark; may be repeated."
    )
    parser.add_argument(
        "--state",
        metavar="directory",
        help="Where Spark's log is kept; ~/.penstock if not said.",
    )


def _parser() -> ToolParser:
    parser = ToolParser("connect-mirror-maker", _USAGE)
    parser.add_argument("file", nargs="?")
    parser.add_argument(
        "--clusters",
        metavar="alias",
        nargs="+",
        help="Mirror into these clusters alone; into all of the file if not said.",
    )
    parser.flag("status", "Print how far each topic was copied, and end.")
    add_spark_options(parser)
    return parser
