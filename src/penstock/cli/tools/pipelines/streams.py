"""penstock streams: run a file's topology on Spark, describe it, and look after it."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import ToolParser, key_values, settings_from
from penstock.errors import CommandError

if TYPE_CHECKING:
    from penstock.streams import StreamsTopology
    from penstock.streams.running.folder import ApplicationFolder

_USAGE = (
    "penstock streams run FILE [--bootstrap-server H:P] [--master URL] [--once]\n"
    "penstock streams describe FILE [--svg]\n"
    "penstock streams status [APPLICATION...]\n"
    "penstock streams reset APPLICATION [--bootstrap-server H:P] [--execute]\n"
    "Run a Python file's topology of Streams on Spark, and look after it."
)
_ACTIONS = ("run", "describe", "status", "reset")
_BOOTSTRAP = "localhost:9092"
# Which options belong to which action; given elsewhere they would be ignored, so they are refused.
_ONLY_FOR = {
    "bootstrap_server": ("run", "reset"),
    "command_config": ("run", "reset"),
    "application_id": ("run",),
    "setting": ("run",),
    "master": ("run",),
    "conf": ("run",),
    "max_restarts": ("run",),
    "once": ("run",),
    "svg": ("describe",),
    "execute": ("reset",),
}


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    _check(parser, options)
    if options.action == "run":
        return _run(options)
    if options.action == "describe":
        _, topology, _ = loaded(Path(options.what[0]))
        print(topology.picture() if options.svg else topology.describe())
        return 0
    if options.action == "status":
        return _status(options)
    return _reset(options)


def loaded(path: Path) -> "tuple[ModuleType, StreamsTopology, dict[str, Any]]":
    """The module, the one topology it makes at its top level, and its settings, if it has any."""
    from penstock.pipelines.files import load_module
    from penstock.streams import StreamsTopology

    module = load_module(path)
    found = {id(v): v for v in vars(module).values() if isinstance(v, StreamsTopology)}
    if len(found) != 1:
        raise CommandError(
            f"{path} has {len(found) or 'no'} topologies at its top level; it needs one: "
            "topology = builder.build()"
        )
    config = getattr(module, "config", {})
    if not isinstance(config, Mapping):
        raise CommandError(f"{path}: config must be a dict of settings.")
    return module, next(iter(found.values())), dict(config)


def _run(options: argparse.Namespace) -> int:
    from penstock.cli.stopping import stop_on_signals
    from penstock.streams import KafkaStreams, StreamsState

    stop = stop_on_signals()
    path = Path(options.what[0])
    module, topology, config = loaded(path)
    app = KafkaStreams(
        topology,
        _config(options, path, config),
        master=options.master,
        conf=key_values(options.conf or [], "--conf"),
        modules=[module],
        report=lambda sentence: print(sentence, flush=True),
        restarts_max=options.max_restarts,
    )
    app.on_state_change(lambda new, old: print(f"{old.value} → {new.value}", flush=True))
    if options.once:
        app.run_once()
    else:
        app.start()
        while not stop.wait(0.25) and not app.wait(0):
            pass
        app.close()
    if app.state is StreamsState.ERROR:
        print(app.failure, file=sys.stderr)
        return 1
    return 0


def _config(
    options: argparse.Namespace, path: Path, config: Mapping[str, object]
) -> dict[str, object]:
    """The file's settings, then the command's."""
    given: dict[str, object] = {"application.id": path.stem.replace("_", "-"), **config}
    given |= settings_from(options.command_config)
    given |= key_values(options.setting or [], "--setting")
    if options.application_id:
        given["application.id"] = options.application_id
    if options.state:
        given["state.dir"] = options.state
    if options.bootstrap_server or "bootstrap.servers" not in given:
        given["bootstrap.servers"] = options.bootstrap_server or _BOOTSTRAP
    return given


def _state_dir(options: argparse.Namespace) -> Path:
    return Path(options.state or "~/.penstock/streams").expanduser()


def _status(options: argparse.Namespace) -> int:
    from penstock.streams.running.folder import ApplicationFolder

    root = _state_dir(options)
    there = sorted(child.name for child in root.iterdir()) if root.is_dir() else []
    names = options.what or there
    if not names:
        print(f"No application has run yet (state directory {root}).")
    for name in names:
        if name not in there:
            known = ", ".join(there) or "none"
            raise CommandError(f"No application {name!r} has run in {root}; known are: {known}.")
        _print_status(name, ApplicationFolder(root / name))
    return 0


def _print_status(name: str, folder: "ApplicationFolder") -> None:
    told = folder.statuses()
    state = "never started" if told is None else told["state"]
    if told is not None and not folder.is_running() and state not in ("ERROR", "NOT_RUNNING"):
        state = "ended unexpectedly"
    print(f"{name}: {state}")
    for stage in told["stages"] if told else ():
        lag = "unknown" if stage.lag is None else f"{stage.lag:,}"
        batch = "-" if stage.batch is None else stage.batch
        print(f"  {stage.name}: {stage.state}, batch {batch}, {stage.rows:,} records, lag {lag}")
        print(f"    to {stage.output}")
        if stage.failure:
            print(f"    last failure: {stage.failure}")


def _reset(options: argparse.Namespace) -> int:
    from penstock.client.wire.raw_cluster import cluster_for
    from penstock.streams.running.folder import ApplicationFolder
    from penstock.streams.running.reset import carry_out_reset, plan_application_reset

    (name,) = options.what
    folder = ApplicationFolder(_state_dir(options) / name)
    last = (folder.statuses() or {}).get("bootstrap")
    settings = settings_from(options.command_config)
    settings["bootstrap.servers"] = options.bootstrap_server or last or _BOOTSTRAP
    with cluster_for(settings) as cluster:
        plan = plan_application_reset(cluster, name, folder)
        print(f"Resetting {name} removes:")
        print("\n".join(plan.lines()))
        if not options.execute and not _ask_consent():
            print("Nothing was removed; --execute does it without asking.")
            return 0
        carry_out_reset(plan, cluster)
    print(f"{name} begins anew with its next run. What it wrote to its outputs is still there.")
    return 0


def _ask_consent() -> bool:
    if not sys.stdin.isatty():
        return False
    return input("Remove it? [y/N] ").strip().lower() in ("y", "yes")


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    for name, actions in _ONLY_FOR.items():
        if getattr(options, name) not in (None, False) and options.action not in actions:
            word = name.replace("_", "-")
            parser.error(f"--{word} does not go with {options.action}; it is for {actions[0]}.")
    if options.action in ("run", "describe") and len(options.what) != 1:
        parser.error(f"Give one Python file: penstock streams {options.action} FILE")
    if options.action == "reset" and len(options.what) != 1:
        parser.error("Say which application to reset: penstock streams reset APPLICATION")


def _parser() -> ToolParser:
    parser = ToolParser("penstock streams", _USAGE)
    option = parser.add_argument
    option("action", choices=_ACTIONS)
    option("what", nargs="*")
    option(
        "--bootstrap-server",
        metavar="server to connect to",
        help="The Kafka server to connect to; localhost:9092 if not said.",
    )
    option("--command-config", metavar="file", help="Property file with settings of the client.")
    option(
        "--state",
        metavar="directory",
        help="Where state and status are kept; ~/.penstock/streams if not said.",
    )
    option("--application-id", metavar="id", help="Its name; the file's if not said.")
    option(
        "--setting",
        metavar="key=value",
        action="append",
        help="A setting of the application, as processing.guarantee; may be repeated.",
    )
    option("--master", metavar="url", help="Where Spark runs; this machine if not said.")
    option(
        "--conf", metavar="key=value", action="append", help="A setting of Spark; may be repeated."
    )
    option(
        "--max-restarts",
        metavar="n",
        type=int,
        help="Give a stage up after this many failures in a row; no limit if not said, 3 with "
        "--once.",
    )
    parser.flag("once", "Work off what is there, then end.")
    parser.flag("svg", "Describe as a picture.")
    parser.flag("execute", "Reset without asking.")
    return parser
