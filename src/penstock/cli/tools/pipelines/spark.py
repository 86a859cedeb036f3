"""penstock spark: the master and the workers of a Spark standalone cluster."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser
from penstock.errors import ConfigError

_USAGE = (
    "penstock spark master [--host H] [--port P]\n"
    "penstock spark worker spark://HOST:PORT [--cores N] [--memory 2g]\n"
    "Start a Spark standalone cluster; run pipelines on it with\n"
    "penstock pipeline run FILE --master spark://HOST:PORT"
)


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    if options.role == "master":
        if options.url is not None:
            parser.error(f"A master takes no URL, but {options.url} was given.")
        return _master(options)
    if options.url is None:
        parser.error(
            "A worker needs the URL of its master: penstock spark worker spark://HOST:PORT"
        )
    return _worker(options)


def _master(options: argparse.Namespace) -> int:
    from penstock.spark.start import standalone

    for name in ("cores", "memory", "work_dir"):
        if getattr(options, name) is not None:
            raise ConfigError(f"--{name.replace('_', '-')} is for workers, not for the master")
    port = standalone.MASTER_PORT if options.port is None else options.port
    webui_port = 8080 if options.webui_port is None else options.webui_port
    launch = standalone.master(host=options.host, port=port, webui_port=webui_port)
    url = f"spark://{options.host}:{port}"
    print(f"The Spark master starts at {url}. Ctrl-C stops it. Start a worker with:")
    print(f"    penstock spark worker {url}")
    standalone.become(launch)
    return 0


def _worker(options: argparse.Namespace) -> int:
    from penstock.pipelines.state import StateDir
    from penstock.spark.start import standalone

    if options.port is not None:
        raise ConfigError("--port is for the master; a worker chooses its own")
    work_dir = Path(options.work_dir or StateDir.chosen(None).path / "spark-work")
    launch = standalone.worker(
        options.url,
        host=options.host,
        cores=options.cores,
        memory=options.memory,
        work_dir=work_dir,
        webui_port=options.webui_port or 0,
    )
    work_dir.mkdir(parents=True, exist_ok=True)
    print(f"A Spark worker for {options.url} starts, with its files in {work_dir}.")
    standalone.become(launch)
    return 0


def _parser() -> ToolParser:
    parser = ToolParser("penstock spark", _USAGE)
    parser.add_argument("role", choices=("master", "worker"))
    parser.add_argument("url", nargs="?")
    parser.add_argument(
        "--host",
        metavar="address",
        default="127.0.0.1",
        help="Address to listen on. The default is this machine alone: whoever reaches a master "
        "can run code on its workers.",
    )
    parser.add_argument("--port", metavar="port", type=int, help="Of the master; 7077 if not said.")
    parser.add_argument(
        "--webui-port", metavar="port", type=int, help="Of the web page; 8080 for the master."
    )
    parser.add_argument("--cores", metavar="n", type=int, help="Cores a worker gives; all.")
    parser.add_argument("--memory", metavar="size", help="Memory a worker gives, such as 2g.")
    parser.add_argument("--work-dir", metavar="path", help="Where a worker keeps its files.")
    return parser
