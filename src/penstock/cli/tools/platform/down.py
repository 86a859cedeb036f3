"""`penstock down`: stop what `penstock up` started, from another terminal."""

from collections.abc import Sequence

from penstock.cli.parser import ToolParser
from penstock.cli.tools.platform.options import add_file, directory_given
from penstock.errors import CommandError


def main(argv: Sequence[str]) -> int:
    parser = ToolParser("penstock down", "Stop the platform that runs in a directory.")
    add_file(parser)
    parser.add_argument(
        "--timeout", type=float, default=120.0, metavar="s", help="How long to wait. (default: 120)"
    )
    options = parser.parse(argv)
    from penstock.platform.ending import end_tree

    directory = directory_given(options)
    if not end_tree(directory, timeout_s=options.timeout):
        raise CommandError(f"Nothing runs in {directory.path}.")
    print("Stopped.")
    return 0
