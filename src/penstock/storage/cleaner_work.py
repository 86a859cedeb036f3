"""One job of compaction from beginning to end: survey, then rewrite group by group."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.storage.cleaner_job import CleanJob
from penstock.storage.cleaner_rewrite import Rewriting
from penstock.storage.cleaner_survey import Spend, survey

# Told of finished segments and of those whose place they take, both by their base offsets;
# returns when they are in place.
HandOver = Callable[[list[int], list[int]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was done."""

    end_offset: int  # Before this everything is clean; below the job's if the map was full.
    key_count: int
    map_share: float
    written_bytes: int
    survey_s: float
    total_s: float


def clean(job: CleanJob, *, spend: Spend, hand_over: HandOver) -> Outcome:
    """Clean as far as one map of keys reaches.

    Groups follow each other: what a tombstone deletes is gone before the tombstone itself goes.
    """
    started_s = time.monotonic()
    found = survey(job, spend)
    surveyed_s = time.monotonic()
    rewriting = Rewriting(job, found, spend)
    for group in rewriting.groups():
        new = rewriting.rewrite(group)
        if new:
            hand_over([facts.base_offset for facts in group], new)
    return Outcome(
        end_offset=found.end_offset,
        key_count=found.offsets.size,
        map_share=found.offsets.used_bytes / job.map_bytes,
        written_bytes=rewriting.written_bytes,
        survey_s=surveyed_s - started_s,
        total_s=time.monotonic() - started_s,
    )
