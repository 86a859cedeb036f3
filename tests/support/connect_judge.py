"""Kafka's own transforms, predicates and converters, asked for their answers to many cases at once.

Run as a module, it writes the golden answers anew.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.support.connect_cases import Case, all_cases, known, settings_cases
from tests.support.java import compiled, run_java
from tests.support.outside import needs
from tests.support.processes import ROOT

PROGRAM = ROOT / "tests" / "compat" / "java" / "ConnectJudge.java"
JARS = "kafka-4.3.1"
GOLDEN = ROOT / "tests" / "golden" / "connect" / "answers.jsonl"
GOLDEN_COUNT = 30


def judged(cases: list[Case], file: Path) -> list[Any]:
    """The answers of Kafka's classes, from one start of Java."""
    file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    class_path = compiled(PROGRAM, needs(JARS))
    printed = run_java(class_path, "ConnectJudge", str(file), timeout_s=280)
    return [json.loads(line) for line in printed.splitlines()]


def write_golden() -> None:
    """Ask the judge, and keep cases and answers for machines without Java."""
    cases = [*all_cases(GOLDEN_COUNT), *settings_cases()]
    with tempfile.TemporaryDirectory() as folder:
        answers = judged(cases, Path(folder) / "cases.txt")
    lines = (
        json.dumps([case, known(answer)], separators=(",", ":"))
        for case, answer in zip(cases, answers, strict=True)
    )
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write_golden()
