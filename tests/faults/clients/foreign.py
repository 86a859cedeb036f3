"""Clients in other languages, which write the same histories: Apache Kafka's own, and franz-go.

They play the roles with transactions. Java 4.x and franz-go speak the newer protocol, in which a
transaction has an epoch of its own and the leader adds partitions (KIP-890); Java 3.9 and all
Python libraries speak the older one.
"""

import json
from pathlib import Path

from tests.support.java import compiled
from tests.support.outside import REPORT, missing

PROGRAM = Path(__file__).with_name("java") / "FaultClient.java"
EXTRAS = {"java": "kafka-4.3.1", "java-3.9": "kafka-3.9.1", "franz-go": "franz-go"}


def missing_family(family: str) -> str:
    """Why this family cannot play here; empty when it can."""
    return missing(EXTRAS[family]) if family in EXTRAS else ""


def command_of(family: str) -> list[str]:
    """What starts a client of this family, without its options."""
    path = Path(json.loads(REPORT.read_text())[EXTRAS[family]]["path"])
    if family == "franz-go":
        return [str(path)]
    # Small and quick to start: several of them share a machine with a whole cluster.
    command = ["java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [*command, "-cp", compiled(PROGRAM, path), PROGRAM.stem]
