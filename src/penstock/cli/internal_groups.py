"""Groups that nobody reads with, which the tools leave out unless they are asked for.

A Spark sink keeps its notes on batches as offsets of groups of its own. One rule for all tools that
list groups, so that none shows what another hides.
"""

import argparse
from collections.abc import Iterable

from penstock.cli.parser import ToolParser
from penstock.client.operations.groups import GroupListing
from penstock.spark.sink.transactional import holds_notes


def add_include_internal(parser: ToolParser, with_: str) -> None:
    """The option that asks for them; `with_` names the options that it goes with."""
    parser.flag(
        "include-internal",
        f"With {with_}: also groups in which Spark sinks keep notes on batches.",
    )


def shown_groups(listed: Iterable[GroupListing], options: argparse.Namespace) -> list[GroupListing]:
    """The groups to show: those that somebody reads with, or all where all were asked for."""
    return [one for one in listed if options.include_internal or not holds_notes(one.group_id)]
