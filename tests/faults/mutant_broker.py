"""A broker with one of the mutants in it: python -m tests.faults.mutant_broker NAME server ..."""

import sys

from tests.faults.mutants import MUTANTS

from penstock.cli.main import main

if __name__ == "__main__":
    name = sys.argv.pop(1)
    MUTANTS[name].inject()
    print(f"this broker has a mistake in it: {MUTANTS[name].text}", flush=True)
    sys.exit(main())
