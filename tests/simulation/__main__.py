"""`python -m tests.simulation --seeds 300`: clusters by the seed, each in a process of its own."""

import os
import sys

if os.environ.get("PYTHONHASHSEED") != "0":
    # The order in sets of strings is part of a run.
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])

import tests.simulation.determinism  # noqa: F401 - before anything of the product
from tests.simulation.many import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
