"""A plan's outline: what state in a checkpoint depends on, and what changed between two plans.

State belongs to nodes and stores by their names. Functions cannot be compared, so a function that
is other than it was goes unnoticed, as in Kafka Streams.
"""

from collections.abc import Mapping
from typing import Any

from penstock.streams.plan.nodes import PlanNode
from penstock.streams.plan.stages import Stage, task_count

_LAYOUT = 2  # Of pages, and of what is told in internal topics.


def outline_of(stages: tuple[Stage, ...], counts: Mapping[str, int], places: int) -> dict[str, Any]:
    """Of a whole application, as plain values."""
    return {
        "layout": _LAYOUT,
        "places": places,
        "stages": {
            str(stage.number): {
                "tasks": task_count(stage, counts),
                "nodes": [_line(node) for node in stage.topology.nodes],
            }
            for stage in stages
        },
    }


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed, a line for each; none: the state of the one fits the other."""
    found = []
    if old.get("layout") != new["layout"]:
        found.append(f"the layout of state was {old.get('layout')}, and is {new['layout']}")
    if old.get("places") != new["places"]:
        found.append(f"shuffle.partitions was {old.get('places')}, and is {new['places']}")
    before, after = old.get("stages", {}), new["stages"]
    for number in sorted({*before, *after}, key=int):
        was, now = before.get(number), after.get(number)
        if was is None or now is None:
            found.append(f"stage {number} is {'new' if was is None else 'gone'}")
            continue
        if was["tasks"] != now["tasks"]:
            found.append(f"stage {number} had {was['tasks']} partitions, and has {now['tasks']}")
        found += [f"stage {number}: {line} is gone" for line in _not_in(was, now)]
        found += [f"stage {number}: {line} is new" for line in _not_in(now, was)]
    return found


def _not_in(these: Mapping[str, Any], those: Mapping[str, Any]) -> list[str]:
    return [line for line in these["nodes"] if line not in those["nodes"]]


def _line(node: PlanNode) -> str:
    parts = [node.name, type(node.step).__name__]
    parts += [f"reads {', '.join(node.topics)}"] if node.kind == "source" else []
    parts += [f"writes {', '.join(node.topics)}"] if node.kind == "sink" else []
    parts += [f"behind {', '.join(node.parents)}"] if node.parents else []
    parts += [f"with {', '.join(node.stores)}"] if node.stores else []
    windows = getattr(node.step, "windows", None)
    parts += [repr(windows)] if windows is not None else []
    return " ".join(parts)
