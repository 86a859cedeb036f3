"""kafka-groups: list the groups of all kinds, whoever their members are."""

import argparse
from collections.abc import Sequence

from penstock.cli.bootstrap import add_bootstrap, add_command_config, admin_of
from penstock.cli.internal_groups import add_include_internal, shown_groups
from penstock.cli.parser import ToolParser
from penstock.cli.sentences import told_after
from penstock.client.operations.groups import SHARE, STREAMS, TYPES, GroupListing

_FILTERS = ("consumer", "share", "streams")


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    _check(parser, options)
    told = told_after("Error while executing groups command : ")
    with admin_of(parser, options) as admin, told:
        groups = admin.list_groups()
    shown = shown_groups(groups, options)
    print(table([group for group in shown if passes(group, options)]))
    return 0


def passes(group: GroupListing, options: argparse.Namespace) -> bool:
    """Whether the filters let a group through; without filters all pass."""
    if options.group_type is not None:
        of_type = group.type == options.group_type
        return of_type and options.protocol in (None, group.protocol)
    if options.protocol is not None:
        return bool(group.protocol == options.protocol)
    if options.consumer:
        return group.is_consumer_group
    if options.share:
        return group.type == SHARE
    return group.type == STREAMS if options.streams else True


def table(groups: Sequence[GroupListing]) -> str:
    """Kafka's table: all columns as wide as the widest word."""
    rows = [(group.group_id, group.type or "", group.protocol) for group in groups]
    width = max([20, *(len(word) for row in rows for word in row)])
    lines = [" ".join(f"{word:<{width}}" for word in ("GROUP", "TYPE", "PROTOCOL"))]
    lines += ["".join(f"{word:<{width}} " for word in row) for row in rows]
    return "\n".join(lines)


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    parser.required(options, "bootstrap-server")
    if not options.list:
        parser.error("Command must include exactly one action: --list.")
    if options.group_type is not None:
        by_word = {name.lower(): name for name in TYPES}
        if options.group_type.lower() not in by_word:
            parser.error("--group-type must be a valid group type.")
        options.group_type = by_word[options.group_type.lower()]
    for name in _FILTERS:
        others = [*(one for one in _FILTERS if one != name), "group-type", "protocol"]
        for other in others:
            if getattr(options, name) and getattr(options, other.replace("-", "_")):
                parser.error(f'Option "[{name}]" can\'t be used with option "[{other}]"')


def _parser() -> ToolParser:
    parser = ToolParser("kafka-groups", "This tool helps to list groups of all types.")
    parser.missing = "Missing required option(s) [{}]"
    parser.told_when_bare = ""
    add_bootstrap(parser)
    add_command_config(parser)
    parser.flag("list", "List the groups.")
    parser.flag(
        "consumer",
        "Show all kinds of consumer groups: type 'consumer', and type 'classic' where the "
        "protocol is 'consumer' or empty.",
    )
    parser.flag("share", "Show share groups.")
    parser.flag("streams", "Show streams groups.")
    parser.add_argument(
        "--group-type",
        metavar="type",
        help="Show groups of a type: 'classic', 'consumer', 'share' or 'streams'.",
    )
    parser.add_argument("--protocol", metavar="protocol", help="Show groups of a protocol.")
    add_include_internal(parser, "--list")
    return parser
