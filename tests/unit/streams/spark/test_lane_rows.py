"""Lanes beside steps: what a lane leaves, what is not its kind of batch, and the order of both."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.streams import STRING, StreamsBuilder
from penstock.streams.plan.lanes import has_lane, with_lane
from penstock.streams.spark import lane_rows, processor
from penstock.streams.spark.lane_rows import run_in_lane
from penstock.streams.spark.processor import run_without_state
from penstock.streams.tasks.batch import StageWork
from penstock.streams.values.lanes import LaneRows

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Doubling:
    """A lane that writes values twice, and leaves those that begin with x to the steps."""

    def __init__(self) -> None:
        self.batches = 0

    def taken(self, batch: Any) -> LaneRows:
        self.batches += 1
        values = batch["value"].to_pylist()
        own = np.array([not value.startswith(b"x") for value in values], bool)
        places = np.flatnonzero(own)
        made = pa.array([values[at] * 2 for at in places], pa.binary())
        key = batch["key"].take(pa.array(places))
        return LaneRows(places=places, left=np.flatnonzero(~own), key=key, columns=[made])


def work_with(lane: Doubling) -> StageWork:
    builder = StreamsBuilder(key=STRING, value=STRING)
    lines = builder.stream("in").filter(lambda key, value: value != "x0")
    lines.flat_map_values(lambda value: [value + value]).to("out")
    topology = with_lane(builder.build(), "in", lane)
    assert has_lane(topology, merges=False)
    return StageWork(
        application_id="app", topology=topology, own_format=frozenset(), progress="p",
        has_state=False,
    )  # fmt: skip


def batch_of(values: list[bytes], offsets: list[int], partitions: list[int]) -> Any:
    size = len(values)
    columns = [
        pa.array(["in"] * size), pa.array(partitions, pa.int32()), pa.array(offsets, pa.int64()),
        pa.array(range(size), pa.int64()), pa.array([b"k"] * size), pa.array(values, pa.binary()),
        pa.array([[]] * size, HEADERS),
    ]  # fmt: skip
    names = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    return pa.RecordBatch.from_arrays(columns, names=names)


def rows(batches: Any) -> list[Any]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture(autouse=True)
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lane_rows, processor):
        monkeypatch.setattr(module, "wall_clock_ms", lambda: 7)


@pytest.mark.parametrize(
    "values", [[b"a", b"b"], [b"x1", b"a", b"x0", b"x2", b"b"], [b"x1", b"x2"], [b"x0"]]
)
def test_what_a_lane_leaves_comes_out_in_its_place(values: list[bytes]) -> None:
    lane = Doubling()
    work = work_with(lane)
    batch = batch_of(values, list(range(len(values))), [0] * len(values))
    assert rows(run_in_lane(work, iter([batch]))) == rows(run_without_state(work, iter([batch])))
    assert lane.batches == 1


@pytest.mark.parametrize("places", [([1, 0], [0, 0]), ([0, 1], [0, 1])])
def test_a_batch_out_of_order_or_of_two_partitions_goes_step_by_step(places: Any) -> None:
    lane = Doubling()
    work = work_with(lane)
    batch = batch_of([b"a", b"b"], *places)
    assert rows(run_in_lane(work, iter([batch]))) == rows(run_without_state(work, iter([batch])))
    assert lane.batches == 0


def test_no_lane_leads_to_two_ends() -> None:
    topology = work_with(Doubling()).topology
    sink = next(node for node in topology.nodes if node.kind == "sink")
    two = replace(topology, nodes=(*topology.nodes, replace(sink, name="another")))
    assert not has_lane(two, merges=True)
