"""Judge histories kept from an earlier run: python -m tests.faults.kcheck DIRECTORY."""

import argparse
import sys
from pathlib import Path

from tests.faults.kcheck.operations import read_histories
from tests.faults.kcheck.verdict import judge


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kcheck", description=__doc__)
    parser.add_argument("directory", type=Path, help="where the *.jsonl files of a run are")
    directory = parser.parse_args().directory
    if not any(directory.glob("*.jsonl")):
        print(f"{directory} holds no history (*.jsonl)", file=sys.stderr)
        return 2
    verdict = judge(read_histories(directory))
    print("\n".join(verdict.lines()))
    return 1 if verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main())
