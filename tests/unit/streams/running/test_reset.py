"""A reset finds every internal topic of an application by its name, and nobody else's."""

import pytest
from tests.support.streams_scripts import TOPOLOGIES, built

from penstock.cli.tools.groups.streams_application_reset import internal_topics
from penstock.streams.running.reset import is_internal


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_all_topics_that_a_topology_makes_are_found_by_both_commands(name: str) -> None:
    made = built(name).internal_topic_names("app")
    assert [topic for topic in made if not is_internal("app", topic)] == []
    assert internal_topics("app", made, []) == made


def test_topics_of_others_are_left_alone() -> None:
    others = ["app", "app-orders", "orders", "app2-counts-changelog", "app-my-topic"]
    assert [topic for topic in others if is_internal("app", topic)] == []
