"""penstock pipeline: run files of pipelines, and look after those that run."""

import argparse
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.parser import ToolParser, key_values, settings_from
from penstock.errors import CommandError

if TYPE_CHECKING:
    from penstock.pipelines.state import PipelineState, StateDir
    from penstock.pipelines.supervisor import Order

_USAGE = (
    "penstock pipeline run FILE... [--bootstrap-server H:P] [--master URL] [--once]\n"
    "penstock pipeline list\n"
    "penstock pipeline status [NAME...]\n"
    "penstock pipeline stop NAME... | --all\n"
    "penstock pipeline reset NAME... [--execute]\n"
    "Run Python files that declare pipelines on Spark, and look after them."
)
_ACTIONS = ("run", "list", "status", "stop", "reset")
_SHOW_S = 0.25
_STOP_S = 60.0
# Which options belong to which action; given elsewhere they would be ignored, so they are refused.
_ONLY_FOR = {
    "bootstrap_server": ("run", "reset"),
    "command_config": ("run", "reset"),
    "master": ("run",),
    "conf": ("run",),
    "py_files": ("run",),
    "max_restarts": ("run",),
    "once": ("run",),
    "all": ("stop",),
    "execute": ("reset",),
}


def main(argv: Sequence[str]) -> int:
    from penstock.pipelines.state import StateDir

    parser = _parser()
    options = parser.parse(argv)
    _check(parser, options)
    state = StateDir.chosen(options.state)
    if options.action == "run":
        return _run(options, state)
    if options.action == "list":
        return _list(state)
    if options.action == "status":
        return _status(options.what, state)
    if options.action == "stop":
        return _stop(options, state)
    return _reset(options, state)


def _run(options: argparse.Namespace, state: "StateDir") -> int:
    from penstock.cli.stopping import stop_on_signals
    from penstock.pipelines.supervisor import Supervisor
    from penstock.pipelines.table import view_of

    stop = stop_on_signals()
    order = _order(options, state)
    raised: list[BaseException] = []
    with view_of(sys.stdout.isatty()) as view:
        supervisor = Supervisor(order, view.report)

        def supervise() -> None:
            try:
                supervisor.run(stop)
            except BaseException as error:  # noqa: BLE001  (raised again by the main thread)
                raised.append(error)

        thread = threading.Thread(target=supervise, name="supervisor")
        thread.start()
        while thread.is_alive():
            view.show(supervisor.statuses)
            thread.join(_SHOW_S)
        view.show(supervisor.statuses)
    if raised:
        raise raised[0]
    for query in supervisor.failed:
        print(f"{query.name} was given up: {query.failure}", file=sys.stderr)
    return 1 if supervisor.failed else 0


def _order(options: argparse.Namespace, state: "StateDir") -> "Order":
    from penstock.pipelines.files import load_files
    from penstock.pipelines.supervisor import Order

    loaded = load_files(Path(word) for word in options.what)
    return Order(
        pipelines=[declared for declared, _ in loaded.values()],
        files={name: str(path.resolve()) for name, (_, path) in loaded.items()},
        state=state,
        settings=_settings(options),
        master=options.master,
        conf=key_values(options.conf or [], "--conf"),
        py_files=options.py_files or (),
        once=options.once,
        restarts_max=options.max_restarts,
    )


def _settings(options: argparse.Namespace) -> dict[str, str]:
    settings = settings_from(options.command_config)
    named = options.bootstrap_server or settings.get("bootstrap.servers") or "localhost:9092"
    return {**settings, "bootstrap.servers": named}


def _list(state: "StateDir") -> int:
    from penstock.pipelines.table import print_table, settled

    found = state.pipelines()
    if not found:
        print(f"No pipeline has run yet (state directory {state.path}).")
        return 0
    print_table([settled(one.status(), running=one.is_running()) for one in found])
    return 0


def _status(names: Sequence[str], state: "StateDir") -> int:
    from penstock.pipelines.table import details_of

    chosen = [state.known(name) for name in names] or state.pipelines()
    if not chosen:
        print(f"No pipeline has run yet (state directory {state.path}).")
    for at, one in enumerate(chosen):
        lines = details_of(one.status(), running=one.is_running())
        print("\n".join(["", *lines] if at else lines))
    return 0


def _stop(options: argparse.Namespace, state: "StateDir") -> int:
    chosen = state.pipelines() if options.all else [state.known(name) for name in options.what]
    running = [one for one in chosen if one.is_running()]
    for one in chosen:
        if one in running:
            one.ask_to_stop()
        elif not options.all:
            print(f"{one.name} does not run.")
    give_up_s = time.monotonic() + _STOP_S
    for one in running:
        _wait_for_end(one, give_up_s)
        print(f"{one.name} has stopped.")
    if options.all and not running:
        print("No pipeline runs.")
    return 0


def _wait_for_end(one: "PipelineState", give_up_s: float) -> None:
    while one.is_running():
        if time.monotonic() > give_up_s:
            raise CommandError(
                f"{one.name} did not stop within {_STOP_S:.0f} s; its supervisor is process "
                f"{one.status().pid}."
            )
        time.sleep(0.1)


def _reset(options: argparse.Namespace, state: "StateDir") -> int:
    from penstock.client.wire.raw_cluster import cluster_for
    from penstock.pipelines.reset import carry_out, plan_reset

    for name in options.what:
        one = state.known(name)
        last = one.status()
        settings = {**last.settings, **settings_from(options.command_config)}
        settings["bootstrap.servers"] = options.bootstrap_server or last.bootstrap
        with cluster_for(settings) as cluster:
            plan = plan_reset(one, cluster)
            print(f"Resetting {name} removes:")
            print("\n".join(plan.lines()))
            if not options.execute and not _ask_consent():
                print("Nothing was removed; --execute does it without asking.")
                continue
            carry_out(plan, cluster)
        print(f"{name} begins anew with its next run. What it wrote is still there.")
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
    if options.action == "run" and not options.what:
        parser.error("Give the Python file of a pipeline: penstock pipeline run FILE")
    if options.action == "list" and options.what:
        parser.error("list takes no names; status does.")
    if options.action == "reset" and not options.what:
        parser.error("Say which pipeline to reset: penstock pipeline reset NAME")
    if options.action == "stop" and bool(options.what) == options.all:
        parser.error("Say which pipelines to stop: names, or --all")
    if options.max_restarts is not None and options.max_restarts < 0:
        parser.error("--max-restarts cannot be negative.")


def _parser() -> ToolParser:
    parser = ToolParser("penstock pipeline", _USAGE)
    parser.add_argument("action", choices=_ACTIONS)
    parser.add_argument("what", nargs="*")
    parser.add_argument(
        "--bootstrap-server",
        metavar="server to connect to",
        help="The Kafka server to connect to; localhost:9092 if not said.",
    )
    parser.add_argument(
        "--command-config", metavar="file", help="Property file with settings of the client."
    )
    parser.add_argument(
        "--state",
        metavar="directory",
        help="Where checkpoints and status are kept; $PENSTOCK_STATE or ~/.penstock if not said.",
    )
    parser.add_argument(
        "--master",
        metavar="url",
        help="Where Spark runs: local[2], spark://host:port; this machine if not said.",
    )
    parser.add_argument(
        "--conf", metavar="key=value", action="append", help="A setting of Spark; may be repeated."
    )
    parser.add_argument(
        "--py-files",
        metavar="file",
        action="append",
        help="A module or zip that the workers need beside the file itself; may be repeated.",
    )
    parser.add_argument(
        "--max-restarts",
        metavar="n",
        type=int,
        help="Give a query up after this many failures in a row; no limit if not said, 3 with "
        "--once.",
    )
    parser.flag("once", "Work off what is there, then end.")
    parser.flag("all", "Stop all pipelines of the state directory.")
    parser.flag("execute", "Reset without asking.")
    return parser
