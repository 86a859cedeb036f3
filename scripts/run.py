"""`make run`: one broker on its embedded defaults, data in ./data, and how to send a first record.

Only words and a start: the process it becomes is the ordinary `penstock server`.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

WELCOME = """\
Penstock keeps its data in {data} and listens on {address}. Ctrl-C stops it.

Send a first record and read it back, from a second terminal:

    echo "hello" | {bin}/penstock console-producer --bootstrap-server {address} --topic first
    {bin}/penstock console-consumer --bootstrap-server {address} --topic first \\
        --partition 0 --from-beginning --max-messages 1

Any Kafka client will do as well, for instance: kcat -b {address} -t first -C -e
"""


def main() -> None:
    """Say where everything is, then become the broker."""
    data = Path(os.environ.get("PENSTOCK_DATA", ROOT / "data"))
    address = os.environ.get("PENSTOCK_ADDRESS", "localhost:9092")
    data.mkdir(parents=True, exist_ok=True)
    print(WELCOME.format(data=data, address=address, bin=os.path.relpath(BIN)), flush=True)
    command = [sys.executable, "-m", "penstock.cli.main", "server"]
    settings = {"listeners": f"PLAINTEXT://{address}", "log.dirs": str(data)}
    for name, value in settings.items():
        command += ["--override", f"{name}={value}"]
    os.execv(sys.executable, [*command, *sys.argv[1:]])


if __name__ == "__main__":
    main()
