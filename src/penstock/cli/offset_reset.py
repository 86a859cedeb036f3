"""Where a group shall read next, as `--reset-offsets` may say it: the words, the file, the bounds.

Pure: what is committed and how far the partitions reach is asked by the tools and handed in.
"""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from penstock.client.operations.group_reset import OffsetBounds, bounded
from penstock.client.values import TopicPartition
from penstock.errors import CommandError

# Days, hours, minutes and seconds, each with a sign of its own, as Java's Duration reads them.
_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(?:T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:[.,]\d*)?)S)?)?",
    re.IGNORECASE,
)


def parse_datetime(text: str) -> int:
    """`2026-07-24T10:00:00.000`, with an offset from UTC or in UTC, as ms since the epoch."""
    if "T" not in text:
        raise CommandError(
            f"Error parsing timestamp {text!r}. It does not contain a 'T' according to ISO8601 "
            "format"
        )
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            f"Error parsing timestamp {text!r}: write YYYY-MM-DDThh:mm:ss.sss, with Z or +hh:mm "
            "for another zone than UTC."
        ) from None
    return _ms_since_epoch(at if at.tzinfo else at.replace(tzinfo=UTC))


def parse_duration(text: str) -> int:
    """`P1DT2H3M4.5S` in milliseconds."""
    found = _DURATION.fullmatch(text.strip())
    if not found or not any(found.groups()[1:]) or text.upper().endswith("T"):
        raise CommandError(f"{text!r} cannot be parsed to a duration: write PnDTnHnMnS.")
    sign, *parts = found.groups()
    days, hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in parts)
    length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return int(length / timedelta(milliseconds=1)) * (-1 if sign == "-" else 1)


def parse_topic(text: str) -> tuple[str, list[int] | None]:
    """`orders` or `orders:0,1`; without partitions, None: all of them."""
    if ":" not in text:
        return text, None
    topic, _, rest = text.partition(":")
    if not topic or not rest or ":" in rest:
        raise CommandError(f"Invalid topic arg '{text}', expected topic name and partitions")
    for word in rest.split(","):
        if not word.isdigit():
            raise CommandError(f"Invalid partition '{word}' specified in topic arg '{text}'")
    return topic, [int(word) for word in rest.split(",")]


def parse_plan(text: str, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """A file of `topic,partition,offset` for one group, or `group,topic,partition,offset`."""
    plan: dict[str, dict[TopicPartition, int]] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if not row:
            continue
        words = [word.strip() for word in row]
        if len(words) == 3 and len(groups) == 1:
            words = [groups[0], *words]
        if len(words) != 4 or not words[2].isdigit() or not words[3].isdigit():
            raise CommandError(
                f"Line {number} of the reset plan is not of the form topic,partition,offset or "
                f"group,topic,partition,offset: {','.join(row)}"
            )
        at = TopicPartition(words[1], int(words[2]))
        plan.setdefault(words[0], {})[at] = int(words[3])
    return plan


def export_plan(plan: Mapping[str, Mapping[TopicPartition, int]], *, with_group: bool) -> str:
    """The plan as a file that `--from-file` takes."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for group, offsets in plan.items():
        for at, offset in offsets.items():
            rows.writerow([*([group] if with_group else []), at.topic, at.partition, offset])
    return text.getvalue()


def within(
    wanted: Mapping[TopicPartition, int],
    ranges: Mapping[TopicPartition, OffsetBounds],
    warn: Callable[[str], None],
) -> dict[TopicPartition, int]:
    """The wanted offsets, moved into what the partitions have; told where one was moved."""
    new = bounded(wanted, ranges)
    for at, offset in new.wanted.items():
        word = "higher than latest" if offset > new.offsets[at] else "lower than earliest"
        warn(
            f"New offset ({offset}) is {word} offset for topic partition {at}. "
            f"Value will be set to {new.offsets[at]}."
        )
    return new.offsets


def reset_table(plan: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    """The plan as Kafka's tool prints it: an empty line, the header, a row per partition."""
    group_width = max([15, *map(len, plan)])
    topics = [at.topic for offsets in plan.values() for at in offsets]
    topic_width = max([15, *map(len, topics)])
    rows: list[tuple[object, ...]] = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")]
    rows += [
        (group, at.topic, at.partition, offset)
        for group, offsets in plan.items()
        for at, offset in offsets.items()
    ]
    lines = [f"{g:<{group_width}} {t:<{topic_width}} {p:<10} {o}" for g, t, p, o in rows]
    return "\n" + "\n".join(lines)


def _ms_since_epoch(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
