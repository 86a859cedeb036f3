"""`penstock connect standalone|distributed|new`: the word decides what is started or written."""

from collections.abc import Sequence

from penstock.cli.parser import ToolParser
from penstock.cli.tools.connect import distributed, new, standalone

_ABOUT = (
    "Start a Connect worker: penstock connect standalone WORKER.properties CONNECTOR.properties...,"
    " or penstock connect distributed WORKER.properties. Or write a connector of your own:"
    " penstock connect new NAME"
)
_MODES = {"standalone": standalone.main, "distributed": distributed.main, "new": new.main}


def main(argv: Sequence[str]) -> int:
    parser = ToolParser("penstock connect", _ABOUT)
    parser.add_argument("mode", choices=list(_MODES), help="which worker, or a new project")
    mode = parser.parse(argv[:1]).mode
    return _MODES[mode](argv[1:])
