"""A server that is away for a while, and one that is away for too long."""

from penstock.connect.connectors.wiring.reach import ServerReach
from penstock.connect.errors.kinds import RetriableConnectError


def test_it_is_tried_again_until_the_limit_and_an_answer_begins_anew() -> None:
    now = [0.0]
    reach = ServerReach("it", 10, clock=lambda: now[0])
    assert isinstance(reach.failed(OSError("gone")), RetriableConnectError)
    now[0] = 10.0
    assert isinstance(reach.failed(OSError("gone")), RetriableConnectError)
    now[0] = 11.0
    final = reach.failed(OSError("gone"))
    assert not isinstance(final, RetriableConnectError)
    assert str(final) == "it is out of reach: gone (for 11 s)"
    reach.answered()
    assert isinstance(reach.failed(TimeoutError()), RetriableConnectError)
