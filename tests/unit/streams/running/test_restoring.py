"""What is decided about an application that lost its state, without a broker."""

import json

from penstock.streams.running.restoring import RestorePlan, query_names

QUERY = "0f9d4a52-6ab1-4b61-8a39-2f7f0f3f1a11"


def test_a_plan_survives_its_file() -> None:
    plan = RestorePlan(
        positions={"a": {0: 5, 10: 7}}, ends={"app-n-changelog": {0: 3}}, marks={1: {0: b"\0\xff"}}
    )
    assert RestorePlan.of(json.loads(json.dumps(plan.document()))) == plan


def test_only_this_applications_queries_are_settled() -> None:
    named = [
        f"app-stage-0-{QUERY}-decision",
        f"app-stage-0-{QUERY}-sink",
        f"app-stage-12-{QUERY}-7",  # A transactional id: its batch was never decided.
        f"app-stage-1-stage-0-{QUERY}-decision",  # Of an application named app-stage-1.
        f"apple-stage-0-{QUERY}-decision",
        "app",
    ]
    found = query_names("app", named)
    assert [(one.prefix, one.query_id) for one in found] == [
        ("app-stage-0", QUERY),
        ("app-stage-12", QUERY),
    ]
