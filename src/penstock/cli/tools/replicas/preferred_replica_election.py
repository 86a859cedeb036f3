"""kafka-preferred-replica-election: the old name of `kafka-leader-election`, for old texts.

It knew only preferred leaders, and took every partition where no file names some.
"""

import sys
from collections.abc import Sequence

from penstock.cli.bootstrap import add_bootstrap, admin_of
from penstock.cli.parser import ToolParser
from penstock.cli.tools.replicas.leader_election import elect, partitions_in
from penstock.client.operations.elections import ElectionType


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    print("This tool is deprecated. Please use kafka-leader-election tool.", file=sys.stderr)
    options.command_config = options.admin_config
    wanted = partitions_in(options.path_to_json_file) if options.path_to_json_file else None
    with admin_of(parser, options) as admin:
        return elect(admin, ElectionType.PREFERRED, wanted, words="preferred leader election")


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-preferred-replica-election",
        "This tool helps to causes leadership for each partition to be transferred back to the "
        "'preferred replica', it can be used to balance leadership among the servers.",
    )
    add_bootstrap(parser, zookeeper=True)
    parser.add_argument(
        "--admin.config",
        "--command-config",
        dest="admin_config",
        metavar="config file",
        help="Property file containing settings of the client.",
    )
    parser.add_argument(
        "--path-to-json-file",
        metavar="list of partitions for which preferred replica leader election needs to be "
        "triggered",
        help='The JSON file with the partitions: {"partitions":[{"topic": "foo", "partition": 1}]}.'
        " Without it, all partitions.",
    )
    return parser
