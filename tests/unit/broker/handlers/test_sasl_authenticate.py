"""SaslAuthenticate on a listener that asks nobody who they are."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest


@pytest.mark.parametrize("version", [0, 1])
def test_it_comes_at_the_wrong_time(served: Any, version: int) -> None:
    answer = served.ask(SaslAuthenticateRequest(), version)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
