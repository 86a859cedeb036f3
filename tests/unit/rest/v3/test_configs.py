"""Alterations of settings."""

from typing import Any

import pytest

from penstock.client.operations.configs import ConfigChange, Operation
from penstock.http.errors import HttpError
from penstock.rest.v3.configs import config_change


def test_an_alteration_sets_unless_it_says_otherwise() -> None:
    assert config_change({"name": "a", "value": "1"}) == ConfigChange(name="a", value="1")
    deleted = ConfigChange(name="a", operation=Operation.DELETE)
    assert config_change({"name": "a", "operation": "delete"}) == deleted


@pytest.mark.parametrize(
    "one", [{}, {"name": 1}, {"name": "a", "value": 1}, {"name": "a", "operation": "DROP"}]
)
def test_what_makes_no_sense_is_a_bad_request(one: dict[str, Any]) -> None:
    with pytest.raises(HttpError) as refused:
        config_change(one)
    assert refused.value.answer_status == 400
