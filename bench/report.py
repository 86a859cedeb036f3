"""Figures, ratios and goals as values; the printed table and the JSON come from them."""

import json
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.subjects import Round

OURS = "penstock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What the figure should be, beside another subject's or on its own."""

    beside: str | None  # None: the figure itself is bounded, not a ratio.
    at_least: float | None = None
    at_most: float | None = None

    def is_met(self, value: float) -> bool:
        """Whether the value keeps the bounds."""
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)

    def text(self, unit: str) -> str:
        """The goal in the words of the table."""
        mark, bound = ("≥", self.at_least) if self.at_least is not None else ("≤", self.at_most)
        return f"{mark} {bound:g} × {self.beside}" if self.beside else f"{mark} {bound:,g} {unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: the same work for every subject, round after round."""

    work: str
    unit: str
    rounds: Mapping[str, Sequence[float]]  # Round i of every subject ran next to each other.
    goals: Sequence[Goal] = ()
    server_cpu_s_per_gb: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def figure(self, subject: str) -> float:
        """The median over the rounds."""
        return statistics.median(self.rounds[subject])

    def ratio(self, beside: str) -> float:
        """The median of ours against theirs in the same round, which cancels the machine's mood."""
        pairs = zip(self.rounds[OURS], self.rounds[beside], strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)

    def verdicts(self) -> list[tuple[Goal, float, bool]]:
        """Each goal that can be judged, with its value."""
        found = []
        for goal in self.goals:
            if OURS not in self.rounds or (goal.beside and goal.beside not in self.rounds):
                continue
            value = self.ratio(goal.beside) if goal.beside else self.figure(OURS)
            found.append((goal, value, goal.is_met(value)))
        return found


def throughput_row(
    work: str, rounds: Mapping[str, Sequence[Round]], goals: Sequence[Goal] = (), note: str = ""
) -> Row:
    """A row of MB/s with the servers' processor time per gigabyte."""
    cpu = {
        subject: sum(r.server_cpu_s for r in runs) / (sum(r.bytes for r in runs) / 1e9)
        for subject, runs in rounds.items()
        if runs
    }
    figures = {subject: [r.mb_per_s for r in runs] for subject, runs in rounds.items()}
    return Row(
        work=work,
        unit="MB/s",
        rounds=figures,
        goals=goals,
        server_cpu_s_per_gb=cpu,
        note=note,
    )


def machine() -> dict[str, str]:
    """What the bench ran on."""
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory_kb = int(Path("/proc/meminfo").read_text().split()[1])
    return {
        "cpu": model,
        "cores": str(len(Path("/proc/cpuinfo").read_text().split("processor\t")) - 1),
        "memory": f"{memory_kb / 1024 / 1024:.0f} GiB",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_before": Path("/proc/loadavg").read_text().split()[0],
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def table(rows: Sequence[Row]) -> str:
    """The table as Markdown, ready for the README."""
    subjects = [OURS, "raw", "kafka", "official"]  # The last is Spark's own connector.
    subjects = [name for name in subjects if any(row.rounds.get(name) for row in rows)]
    lines = [
        "| work | " + " | ".join(subjects) + " | goals |",
        "| --- | " + " | ".join("---:" for _ in subjects) + " | --- |",
    ]
    for row in rows:
        cells = [cell(row, subject) for subject in subjects]
        verdicts = "; ".join(
            f"{goal.text(row.unit)}: {value:,.2f} {'met' if met else 'MISSED'}"
            for goal, value, met in row.verdicts()
        )
        words = [row.work, *cells, "; ".join(w for w in (verdicts, row.note) if w)]
        lines.append("| " + " | ".join(words) + " |")
    return "\n".join(lines)


def cell(row: Row, subject: str) -> str:
    """One figure with its unit and the server's processor time."""
    if not row.rounds.get(subject):
        return ""
    cpu = row.server_cpu_s_per_gb.get(subject)
    beside = f" ({cpu:.2f} s CPU/GB)" if cpu is not None else ""
    figure = row.figure(subject)
    text = f"{figure:,.0f}" if figure >= 10_000 else f"{figure:.4g}"
    return f"{text} {row.unit}{beside}"


def save(path: Path, about: Mapping[str, str], rows: Sequence[Row]) -> None:
    """Everything measured, as JSON."""
    out = []
    for row in rows:
        judged = [
            {"goal": goal.text(row.unit), "value": value, "met": met}
            for goal, value, met in row.verdicts()
        ]
        medians = {subject: row.figure(subject) for subject, runs in row.rounds.items() if runs}
        out.append({**asdict(row), "median": medians, "verdicts": judged, "goals": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": about, "rows": out}, indent=2) + "\n")
