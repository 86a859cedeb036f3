"""What one server tells another of its queries."""

import pytest

from penstock.sql.running.peer_states import PeerStates, read_states, states_document
from penstock.sql.running.ports import QueryHealth


def test_states_are_read_as_they_were_told() -> None:
    import json

    known = {"Q": QueryHealth(state="ERROR", failures=("no",), rows=7)}
    assert read_states(json.dumps(states_document(known)).encode()) == known
    odd = b'{"Q": {"state": "DANCING", "failures": [], "rows": 0}}'
    assert read_states(odd)["Q"].state == "UNRESPONSIVE"
    with pytest.raises(ValueError):
        read_states(b'{"Q": 1}')


def test_a_server_that_cannot_be_asked_is_unresponsive() -> None:
    assert PeerStates(lambda: None).health("Q").state == "UNRESPONSIVE"
    assert PeerStates(lambda: "http://127.0.0.1:9").health("Q").state == "UNRESPONSIVE"
