"""`make run`: the platform at work, on its embedded defaults, with its data in ./data.

Only a start: the demo itself is `penstock.demo`. `--override key=value` goes to the broker. The
environment may say PENSTOCK_ADDRESS (localhost:9092), PENSTOCK_REGISTRY (localhost:8081),
PENSTOCK_REST (localhost:8082) and PENSTOCK_DATA (./data).
"""

import sys
from pathlib import Path

from penstock.demo.run import main
from penstock.errors import PenstockError

ROOT = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], data=ROOT / "data"))
    except PenstockError as error:
        sys.exit(str(error))
