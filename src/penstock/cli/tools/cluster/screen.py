"""The one screen of `penstock cluster status`: coloured on a terminal, plain elsewhere."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.client.operations.reassignments import PartitionReassignment
from penstock.client.values import TopicPartition
from penstock.status.judging import bytes_text, problems, warnings
from penstock.status.values import BrokerState, ClusterState

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_MOVES_SHOWN = 10
_PLAIN_WIDTH = 120


def show(state: ClusterState, console: "Console | None" = None) -> None:
    """Print the state of a cluster."""
    from rich.console import Console

    if console is None:
        console = Console(highlight=False)
        if not sys.stdout.isatty():
            console = Console(highlight=False, width=_PLAIN_WIDTH)
    for part in (_head(state), _brokers(state), *_moves(state), *_verdict(state)):
        console.print(part)


def _head(state: ClusterState) -> "RenderableType":
    from rich.text import Text

    counts = f"{state.topic_count} topics, {len(state.partitions)} partitions"
    controller = "none" if state.controller_id is None else f"broker {state.controller_id}"
    return Text.assemble(
        ("cluster ", "dim"),
        (state.cluster_id, "bold"),
        ("   controller ", "dim"),
        (controller, "bold" if state.controller_id is not None else "bold red"),
        ("   ", ""),
        counts,
    )


def _brokers(state: ClusterState) -> "RenderableType":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, header_style="bold", padding=(0, 1))
    for name in ("broker", "address", "rack"):
        table.add_column(name, no_wrap=True)
    for name in ("leads", "preferred", "replicas", "out of sync", "lag", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for broker in state.brokers:
        table.add_row(*_cells(state, broker), style="red" if _is_unwell(broker) else None)
    gone = sorted(set(state.replicas()) - {broker.node.id for broker in state.brokers})
    for broker_id in gone:
        held, late = state.replicas()[broker_id], state.out_of_sync()[broker_id]
        preferred = state.preferred()[broker_id]
        cells = [str(broker_id), "-", "-", "0", str(preferred), str(held), str(late), "-", "-"]
        table.add_row(*cells, "gone", style="red")
    return table


def _cells(state: ClusterState, broker: BrokerState) -> list[str]:
    number = broker.node.id
    lag = state.lag(broker)
    notes = [
        "controller" if number == state.controller_id else "",
        "fenced" if broker.is_fenced else "",
        "does not answer" if broker.size_bytes is None else "",
        "disk full" if _has_full_disk(broker) else "",
    ]
    return [
        str(number),
        f"{broker.node.host}:{broker.node.port}",
        broker.node.rack or "-",
        f"{state.leaders()[number]:,}",
        f"{state.preferred()[number]:,}",
        f"{state.replicas()[number]:,}",
        f"{state.out_of_sync()[number]:,}",
        "-" if lag is None else f"{lag:,}",
        "-" if broker.size_bytes is None else bytes_text(broker.size_bytes),
        ", ".join(note for note in notes if note),
    ]


def _is_unwell(broker: BrokerState) -> bool:
    return broker.is_fenced or bool(broker.failures) or _has_full_disk(broker)


def _has_full_disk(broker: BrokerState) -> bool:
    return any(directory.is_full for directory in broker.directories)


def _moves(state: ClusterState) -> list["RenderableType"]:
    from rich.text import Text

    if not state.moves:
        return []
    lines = [Text(f"{len(state.moves)} reassignments under way", style="yellow")]
    shown = sorted(state.moves)[:_MOVES_SHOWN]
    lines += [Text(f"  {move_text(at, state.moves[at])}") for at in shown]
    more = len(state.moves) - _MOVES_SHOWN
    return [*lines, *([Text(f"  and {more} more", style="dim")] if more > 0 else [])]


def _verdict(state: ClusterState) -> list["RenderableType"]:
    from rich.text import Text

    wrong, soon = problems(state), warnings(state)
    lines = [Text(f"Soon: {sentence}", style="yellow", overflow="fold") for sentence in soon]
    if not wrong:
        return [*lines, Text("Nothing is wrong.", style="green")]
    lines.append(Text("What is wrong:", style="bold red"))
    return [*lines, *(Text(f"  {sentence}", style="red", overflow="fold") for sentence in wrong)]


def move_text(at: TopicPartition, move: PartitionReassignment) -> str:
    """`t-0: 0,1,2 -> 1,2,3`."""
    before = [broker for broker in move.replicas if broker not in move.adding]
    return f"{at}: {_ids(before)} -> {_ids(move.target)}"


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(str(broker) for broker in brokers)
