"""Let a pipeline begin anew: forget its checkpoints and the progress its groups have committed.

What it has written stays: deleting a topic or a table is for its owner to decide.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from penstock.client.operations.groups import delete_groups, list_groups
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import CommandError, GroupIdNotFound
from penstock.pipelines.state import PipelineState, PipelineStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPlan:
    """What a reset would remove."""

    checkpoints: list[Path]
    groups: list[str]

    def lines(self) -> list[str]:
        """For people, before they agree."""
        found = [f"  the checkpoint {path}" for path in self.checkpoints]
        found += [f"  the consumer group {group} with its offsets" for group in self.groups]
        return found or ["  nothing: it has neither a checkpoint nor a group"]


def plan_reset(state: PipelineState, cluster: ClusterClient) -> ResetPlan:
    """What there is to remove; CommandError while the pipeline runs."""
    if state.is_running():
        raise CommandError(
            f"The pipeline {state.name} runs; stop it first: penstock pipeline stop {state.name}"
        )
    status = state.status()
    there = {group.group_id for group in list_groups(cluster)}
    wanted = {query.group for query in status.queries}
    ids = query_ids(status)
    sinks = {group for group in there if any(one in group for one in ids)}
    folders = [Path(query.checkpoint) for query in status.queries]
    return ResetPlan(
        checkpoints=[folder for folder in folders if folder.is_dir()],
        groups=sorted((wanted | sinks) & there),
    )


def carry_out(plan: ResetPlan, cluster: ClusterClient) -> None:
    """Remove it; groups first, since a checkpoint without groups is found again by the next try."""
    for group, error in delete_groups(cluster, plan.groups).items():
        if error is not None and not isinstance(error, GroupIdNotFound):
            raise CommandError(f"The group {group} could not be deleted: {error}")
    for folder in plan.checkpoints:
        shutil.rmtree(folder)


def query_ids(status: PipelineStatus) -> set[str]:
    """The ids Spark gave to the queries; the groups of their sinks have them in their names."""
    found = set()
    for query in status.queries:
        file = Path(query.checkpoint) / "metadata"
        if file.is_file():
            found.add(str(json.loads(file.read_text())["id"]))
    return found
