"""What a scrape of the controller tells about partitions and elections."""

from typing import Any


def told(served: Any) -> dict[str, float]:
    return {
        gauge.name.rpartition("_controller_")[2]: gauge.value
        for gauge in served.broker.metrics.gauges()
        if gauge.name.startswith("kafka_controller_")
    }


def test_the_controller_counts_what_has_no_leader_and_what_was_elected_uncleanly(
    served: Any,
) -> None:
    served.create("t", 3)
    before = told(served)
    assert before["kafkacontroller_offlinepartitionscount"] == 0
    assert before["controllerstats_uncleanleaderelections_total"] == 0
    served.broker.controller._ledger.unclean_elections = 2
    assert told(served)["controllerstats_uncleanleaderelections_total"] == 2
    controller, served.broker.controller = served.broker.controller, None
    try:
        assert told(served)["controllerstats_uncleanleaderelections_total"] == 0
    finally:
        served.broker.controller = controller
