"""Settings of producers and consumers on the command line: files, `k=v` words, single options.

A tool's own option beats `--command-property`, which beats the file, which beats the defaults.
"""

import argparse
import logging
from collections.abc import Mapping, Sequence

from penstock.cli.bootstrap import bootstrap_of
from penstock.cli.parser import ToolParser, key_values, settings_from
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.security import Security


def add_client_options(parser: ToolParser, role: str, *, many: bool = False) -> None:
    """`--command-config` and `--command-property`, with the names they had before."""
    nargs = {"nargs": "+", "action": "extend"} if many else {"action": "append"}
    old_words = "--producer-props" if many else f"--{role}-property"
    parser.add_argument(
        "--command-config",
        f"--{role}.config",
        dest="command_config",
        metavar="config file",
        help=f"Property file with settings of the {role}.",
    )
    parser.add_argument(
        "--command-property",
        old_words,
        dest="command_property",
        default=[],
        metavar="key=value",
        help=f"A setting of the {role}; takes precedence over the file.",
        **nargs,  # type: ignore[arg-type]
    )


def client_settings(
    parser: ToolParser,
    options: argparse.Namespace,
    defaults: Mapping[str, object],
    own: Mapping[str, object],
) -> dict[str, object]:
    """All settings in their order of precedence, and the cluster's address; `own` of None was not
    given. A missing address ends the process."""
    settings: dict[str, object] = dict(defaults)
    words = key_values(options.command_property, "--command-property")
    settings.update(settings_from(options.command_config))
    settings.update(words)
    settings.update({key: value for key, value in own.items() if value is not None})
    settings["bootstrap.servers"] = bootstrap_of(parser, options, settings)
    return settings


def quiet_librdkafka() -> None:
    """A tool says the one sentence that matters; of the log, only that a broker cannot be reached.

    That is worth a line while a tool runs, and another when the broker is back.
    """
    log = logging.getLogger("penstock.client")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    shown = logging.StreamHandler()
    shown.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logging.getLogger("penstock.client.connections").addHandler(shown)


def reach(settings: Mapping[str, object], topics: Sequence[str], *, create: bool) -> dict[str, int]:
    """Look before librdkafka tries for minutes: the error code of each topic, 0 for none.

    Raises a sentence at once if no broker answers, or none that trusts us.
    """
    bootstrap, security = str(settings["bootstrap.servers"]), Security.from_settings(settings)
    with ClusterClient(bootstrap, client_id="penstock-tools", security=security) as cluster:
        answer = cluster.metadata(topics, allow_auto_creation=create)
        return {topic.name or "": topic.error_code for topic in answer.topics}
