"""The picture has every node, edge and store of the topology, and nothing lies on another."""

from dataclasses import replace
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from tests.support.streams_scripts import TOPOLOGIES, built

from penstock.streams import StreamsBuilder, StreamsTopology
from penstock.streams.plan.picture import CHAR_PX, Box, laid_out

SVG = "{http://www.w3.org/2000/svg}"


def picture(topology: StreamsTopology) -> ElementTree.Element:
    return ElementTree.fromstring(topology.picture())


def classes(root: ElementTree.Element, tag: str) -> list[str]:
    return [one.attrib["class"] for one in root.iter(SVG + tag) if "class" in one.attrib]


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_node_is_a_box_and_every_parent_an_edge(name: str) -> None:
    topology = built(name)
    root = picture(topology)
    boxes = [kind for kind in classes(root, "rect") if kind != "subtopology"]
    assert sorted(boxes) == sorted(node.kind for node in topology.nodes)
    assert len(classes(root, "path")) == sum(len(node.parents) for node in topology.nodes)
    words = {text.text for text in root.iter(SVG + "text")}
    assert {node.name for node in topology.nodes} <= words
    assert {f"store {store}" for node in topology.nodes for store in node.stores} <= words


def apart(one: Box, two: Box) -> bool:
    beside = one.x + one.width <= two.x or two.x + two.width <= one.x
    return beside or one.y + one.height <= two.y or two.y + two.height <= one.y


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_nodes_stand_apart_inside_their_frame_and_edges_lead_right(name: str) -> None:
    frames = laid_out(built(name))
    for above, below in pairwise(frames):
        assert above.y + above.height < below.y
    for frame in frames:
        places = {box.node.name: box for box in frame.boxes}
        assert all(apart(one, two) for one, two in combinations(frame.boxes, 2))
        for box in frame.boxes:
            assert frame.y < box.y and box.y + box.height < frame.y + frame.height
            assert box.x + box.width < frame.width
            assert max(map(len, box.lines)) * CHAR_PX < box.width
            assert all(places[p].x + places[p].width < box.x for p in box.node.parents)


def test_a_repartition_topic_parts_two_frames() -> None:
    root = picture(built("count_groups"))
    words = [text.text for text in root.iter(SVG + "text")]
    assert classes(root, "rect").count("subtopology") == 2
    assert words.count("topic counts-repartition") == 2
    assert ["Sub-topology 0" in words, "Sub-topology 1" in words] == [True, True]


def test_names_are_escaped() -> None:
    builder = StreamsBuilder()
    builder.stream("in", name="read").foreach(print)
    topology = builder.build()
    # The DSL refuses such a name, as Kafka Streams does; a plan can be made by hand.
    read, end = topology.nodes
    odd = replace(topology, nodes=(replace(read, name="a<b>&c"), replace(end, parents=("a<b>&c",))))
    words = [text.text for text in picture(odd).iter(SVG + "text")]
    assert "a<b>&c" in words


def test_a_topology_always_gives_the_same_picture() -> None:
    assert built("foreign_key").picture() == built("foreign_key").picture()
