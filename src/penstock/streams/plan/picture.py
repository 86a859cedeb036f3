"""A topology as a picture: an SVG with a column for each step a record takes.

The text of `described` is for comparing, this is for looking. A sub-topology is a frame, because
its nodes run in one task; a topic between two frames is where records change tasks. Nodes stand in
the order of the plan, so the same topology always gives the same picture.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from penstock.streams.plan.describe import subtopologies
from penstock.streams.plan.nodes import NodeKind, PlanNode, StreamsTopology

CHAR_PX = 7
LINE_PX = 16
PAD_PX = 8
GAP_X_PX, GAP_Y_PX = 48, 16
FRAME_PX = 24
COLOURS: dict[NodeKind, str] = {"source": "#dbeafe", "processor": "#ffffff", "sink": "#dcfce7"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A node on the picture."""

    node: PlanNode
    lines: tuple[str, ...]
    x: int
    y: int
    width: int

    @property
    def height(self) -> int:
        """As high as its lines."""
        return len(self.lines) * LINE_PX + PAD_PX

    @property
    def middle(self) -> int:
        """Where edges come in and go out."""
        return self.y + self.height // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A sub-topology on the picture."""

    title: str
    boxes: tuple[Box, ...]
    y: int
    width: int
    height: int


def drawn(topology: StreamsTopology) -> str:
    """The whole SVG."""
    frames = laid_out(topology)
    width = max((frame.width for frame in frames), default=0) + 2 * PAD_PX
    height = sum(frame.height + PAD_PX for frame in frames) + PAD_PX
    parts = [part for frame in frames for part in _frame_parts(frame)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="12">'
    )
    return "\n".join([head, _ARROW, *parts, "</svg>"]) + "\n"


_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
    'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
)


def laid_out(topology: StreamsTopology) -> list[Frame]:
    """The frames from top to bottom, with their nodes in columns."""
    frames: list[Frame] = []
    y = PAD_PX
    for number, group in enumerate(subtopologies(topology)):
        mark = " (global)" if any(node.is_global for node in group) else ""
        frame = _frame(f"Sub-topology {number}{mark}", group, y)
        frames.append(frame)
        y += frame.height + PAD_PX
    return frames


def _frame(title: str, group: list[PlanNode], y: int) -> Frame:
    boxes: list[Box] = []
    x = PAD_PX + FRAME_PX
    for column in _columns(group):
        lines = [_lines(node) for node in column]
        width = max(len(line) for one in lines for line in one) * CHAR_PX + 2 * PAD_PX
        top = y + LINE_PX + FRAME_PX
        for node, text in zip(column, lines, strict=True):
            boxes.append(Box(node=node, lines=text, x=x, y=top, width=width))
            top += boxes[-1].height + GAP_Y_PX
        x += width + GAP_X_PX
    bottom = max(box.y + box.height for box in boxes)
    right = max(x - GAP_X_PX, PAD_PX + FRAME_PX + len(title) * CHAR_PX)
    return Frame(
        title=title,
        boxes=tuple(boxes),
        y=y,
        width=right + FRAME_PX - PAD_PX,
        height=bottom + FRAME_PX - y,
    )


def _columns(group: list[PlanNode]) -> list[list[PlanNode]]:
    """The nodes by the longest way to them, so that every edge leads to the right."""
    depth: dict[str, int] = {}
    columns: list[list[PlanNode]] = []
    for node in group:
        depth[node.name] = max((depth[parent] + 1 for parent in node.parents), default=0)
        while len(columns) <= depth[node.name]:
            columns.append([])
        columns[depth[node.name]].append(node)
    return columns


def _lines(node: PlanNode) -> tuple[str, ...]:
    topics = [f"topic {topic}" for topic in node.topics]
    if node.kind == "sink" and not topics:
        topics = ["topic by record"]
    return (node.name, *topics, *(f"store {store}" for store in node.stores))


def _frame_parts(frame: Frame) -> Iterator[str]:
    yield (
        f'<rect class="subtopology" x="{PAD_PX}" y="{frame.y}" width="{frame.width}" '
        f'height="{frame.height}" fill="#f8fafc" stroke="#94a3b8"/>'
    )
    yield _text(frame.title, PAD_PX + FRAME_PX, frame.y + FRAME_PX)
    places = {box.node.name: box for box in frame.boxes}
    for box in frame.boxes:
        yield from (_edge(places[parent], box) for parent in box.node.parents)
    for box in frame.boxes:
        yield from _box_parts(box)


def _box_parts(box: Box) -> Iterator[str]:
    yield (
        f'<rect class="{box.node.kind}" x="{box.x}" y="{box.y}" width="{box.width}" '
        f'height="{box.height}" rx="4" fill="{COLOURS[box.node.kind]}" stroke="#334155"/>'
    )
    for number, line in enumerate(box.lines, 1):
        yield _text(line, box.x + PAD_PX, box.y + number * LINE_PX)


def _edge(start: Box, end: Box) -> str:
    """A curve from a node to its child; it may pass behind the nodes between them."""
    x, bend = start.x + start.width, GAP_X_PX // 2
    path = (
        f"M{x} {start.middle} C{x + bend} {start.middle} "
        f"{end.x - bend} {end.middle} {end.x} {end.middle}"
    )
    return f'<path class="edge" d="{path}" fill="none" stroke="#334155" marker-end="url(#arrow)"/>'


def _text(words: str, x: int, y: int) -> str:
    return f'<text x="{x}" y="{y}">{escape(words)}</text>'
