"""Topologies that cannot be are refused while they are built, with the reason."""

import re

import pytest

from penstock.streams import Processor, StreamsBuilder, TopologyError


def test_a_topic_cannot_be_read_by_two_kinds_of_source() -> None:
    builder = StreamsBuilder()
    builder.table("a")
    with pytest.raises(TopologyError, match="Topic a has already been registered"):
        builder.stream("a")
    with pytest.raises(TopologyError, match="Topic a has already been registered"):
        builder.global_table("a")


def test_streams_of_overlapping_topics_are_refused() -> None:
    builder = StreamsBuilder()
    builder.stream("a", "b")
    with pytest.raises(TopologyError, match="Topic b has already been registered"):
        builder.stream("b")


def test_names_are_given_once() -> None:
    builder = StreamsBuilder()
    builder.table("a", store="rows")
    with pytest.raises(TopologyError, match="StateStore rows is already added"):
        builder.table("b", store="rows")
    builder.stream("c").filter(lambda k, v: True, name="mine")
    with pytest.raises(TopologyError, match="Processor mine is already added"):
        builder.stream("c").filter(lambda k, v: True, name="mine")


def test_a_processor_needs_stores_that_exist() -> None:
    with pytest.raises(TopologyError, match="StateStore sums is not added yet"):
        StreamsBuilder().stream("a").process(Processor, "sums")


def test_only_windows_can_close() -> None:
    with pytest.raises(TopologyError, match="needs a table of windows"):
        StreamsBuilder().table("a").suppress_until_window_closes()


def test_a_topology_without_a_source_is_refused() -> None:
    with pytest.raises(TopologyError, match="needs a source"):
        StreamsBuilder().build()
    with pytest.raises(TopologyError, match="needs a topic"):
        StreamsBuilder().stream()


def test_a_pattern_of_topics_is_refused_with_the_reason() -> None:
    with pytest.raises(TopologyError, match="takes no pattern: what an application reads is"):
        StreamsBuilder().stream(re.compile("orders-.*"))  # type: ignore[arg-type]
