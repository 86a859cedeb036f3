"""An application with a large state: it counts all that is there by key, then ends.

python -m tests.integration.streams.large_state_process BOOTSTRAP DIRECTORY
"""

import sys
from pathlib import Path

from tests.integration.streams.stage_process import counting

from penstock.streams import KafkaStreams

APPLICATION, HEAP_MB = "large", 768


def main(address: str, directory: Path) -> None:
    """One run, in a heap that is far smaller than the state would be as objects."""
    app = KafkaStreams(
        counting(),
        {
            "application.id": APPLICATION,
            "bootstrap.servers": address,
            "state.dir": str(directory / "state"),
        },
        master="local[2]",
        conf={
            "spark.driver.memory": f"{HEAP_MB}m",
            "spark.local.dir": str(directory / "local"),
        },
        report=lambda sentence: print(sentence, flush=True),
    )
    app.run_once()
    if app.failure:
        sys.exit(app.failure)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
