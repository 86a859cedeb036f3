"""Kafka Streams' own TopologyTestDriver, asked for its answers to many scripts at once.

Run as a module, it writes the golden answers anew.
"""

import json
import tempfile
from pathlib import Path

from tests.support.java import compiled, run_java
from tests.support.outside import needs
from tests.support.processes import ROOT
from tests.support.streams_scripts import NOT_DESCRIBED, TOPOLOGIES, Answer, Step, random_script

PROGRAM = ROOT / "tests" / "compat" / "java" / "StreamsJudge.java"
JARS = "kafka-streams-4.3.1"


def judged(scripts: list[tuple[str, list[Step]]], file: Path) -> list[list[Answer]]:
    """The records Kafka Streams writes to `out`, script by script, from one start of Java."""
    lines = []
    for name, script in scripts:
        lines += [f"T {name}", *(" ".join(step) for step in script), "E"]
    answers: list[list[Answer]] = [[]]
    for line in _asked(lines, file).splitlines():
        if line == "E":
            answers.append([])
        else:
            _, key, value, at_ms, *headers = line.split(" ")
            answers[-1].append((key, value, int(at_ms), *headers))
    return answers[:-1]


def described_by_judge(names: list[str], file: Path) -> list[str]:
    """Kafka Streams' descriptions of the topologies."""
    return _asked([f"D {name}" for name in names], file).split("E\n")[:-1]


def _asked(lines: list[str], file: Path) -> str:
    file.write_text("\n".join(lines) + "\n")
    class_path = compiled(PROGRAM, needs(JARS))
    return run_java(class_path, "StreamsJudge", str(file), timeout_s=1800, heap="512m")


GOLDEN = ROOT / "tests" / "golden" / "streams" / "answers.json"
GOLDEN_SEEDS = range(1000, 1004)


def write_golden() -> None:
    """Ask the judge, and keep descriptions and answers for machines without Java."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scripts.txt"
        names = sorted(TOPOLOGIES)
        scripts = [(n, random_script(n, seed, length=16)) for n in names for seed in GOLDEN_SEEDS]
        answers = judged(scripts, file)
        described = dict(zip(names, described_by_judge(names, file), strict=True))
    cases = [
        {"topology": name, "script": [" ".join(step) for step in script], "answers": answer}
        for (name, script), answer in zip(scripts, answers, strict=True)
    ]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    shown = json.dumps({n: d for n, d in described.items() if n not in NOT_DESCRIBED}, indent=1)
    GOLDEN.write_text(f'{{"cases": [\n{lines}\n],\n"descriptions": {shown}}}\n')


if __name__ == "__main__":
    write_golden()
