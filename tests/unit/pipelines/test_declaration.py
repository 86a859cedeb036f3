"""Declarations: what they say, and what they refuse before anything runs."""

from typing import Any

import pytest

from penstock.errors import ConfigError
from penstock.pipelines import Pipeline, Table, Topic, pipeline


def declared(**changes: Any) -> Pipeline:
    words: dict[str, Any] = {"inputs": {"orders": Topic("orders")}, "output": Topic("totals")}
    return pipeline(**{**words, **changes})(revenue_by_shop)


def revenue_by_shop(orders: Any) -> Any:
    return orders


def test_a_pipeline_is_named_after_its_function_and_its_group_after_it() -> None:
    one = declared()
    assert (one.name, one.group) == ("revenue-by-shop", "revenue-by-shop")
    assert one.queries == {"revenue-by-shop": Topic("totals")}


def test_each_of_several_outputs_is_a_query_with_a_group_of_its_own() -> None:
    one = declared(output=None, outputs=[Topic("totals"), Table("lake/totals-table")])
    assert list(one.queries) == ["revenue-by-shop.totals", "revenue-by-shop.totals-table"]
    assert one.group_of("revenue-by-shop.totals") == "revenue-by-shop.totals"


def test_a_single_input_takes_the_name_of_the_only_parameter() -> None:
    assert list(declared(inputs=Topic("orders")).inputs) == ["orders"]


def test_a_pipeline_can_be_called_like_the_function_it_is() -> None:
    frame: Any = object()
    assert declared()(frame) is frame
    assert declared()(orders=frame) is frame


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"output": None}, "no output"),
        ({"inputs": {"shops": Topic("shops", as_table=True)}}, "at least one topic"),
        ({"mode": "upsert"}, "mode='upsert'"),
        ({"delivery": "at-most-once"}, "delivery='at-most-once'"),
        ({"trigger": "often"}, "trigger='often'"),
        ({"trigger": "200 ms"}, "trigger='200 ms'"),  # Spark does not know the unit.
        ({"name": "../up"}, "name is made of"),
        ({"output": Table("t"), "mode": "update"}, "upsert="),
        ({"output": Table("t", format="iceberg", upsert=["id"])}, "delta table"),
        ({"output": Table("t", delete_when="gone")}, "delete_when needs upsert"),
        ({"output": Topic("t", as_table=True)}, "as_table is for inputs"),
        ({"inputs": {"orders": Topic("orders", on_error="skip")}}, "on_error='skip'"),
        ({"inputs": {"orders": Topic("orders", dead_letter="d")}}, "dead_letter of orders"),
        ({"outputs": [Topic("totals")]}, "same name"),
    ],
)
def test_a_declaration_that_cannot_run_is_refused_with_its_reason(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match="pipeline") as told:
        declared(**changes)
    assert words in str(told.value)


def test_inputs_must_be_named_when_the_function_has_several_parameters() -> None:
    with pytest.raises(ConfigError, match="2 parameters"):

        @pipeline(inputs=Topic("orders"), output=Topic("totals"))
        def joined(orders: Any, shops: Any) -> Any:
            return orders
