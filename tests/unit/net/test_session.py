"""Who is at the other end: what was to be done when they leave is done once, and in order."""

from penstock.net.session import ANONYMOUS, Authentication, Session


def connected() -> Session:
    return Session(listener="PLAINTEXT", address="127.0.0.1:5")


def test_nobody_has_to_say_who_they_are_where_no_proof_is_asked_for() -> None:
    session = connected()
    assert session.principal == ANONYMOUS == "User:ANONYMOUS"
    assert session.authentication is Authentication.DONE
    assert session.software is None


def test_everything_is_done_once_in_the_order_it_was_asked_for() -> None:
    session, done = connected(), []
    for name in ("first", "second", "third"):
        session.at_close(name, lambda name=name: done.append(name))  # type: ignore[misc]
    session.close()
    session.close()
    assert done == ["first", "second", "third"]


def test_under_one_name_only_the_last_is_done() -> None:
    session, done = connected(), []
    session.at_close("pull", lambda: done.append(1))
    session.at_close("pull", lambda: done.append(2))
    session.close()
    assert done == [2]


def test_what_was_settled_is_not_done_any_more() -> None:
    session, done = connected(), []
    session.at_close("pull", lambda: done.append(1))
    session.cancel_at_close("pull")
    session.cancel_at_close("never asked for")
    session.close()
    assert done == []


def test_one_act_may_settle_another_that_waits_behind_it() -> None:
    session, done = connected(), []
    session.at_close("first", lambda: session.cancel_at_close("second"))
    session.at_close("second", lambda: done.append(2))
    session.close()
    assert done == []


def test_whoever_comes_too_late_is_served_at_once() -> None:
    session, done = connected(), []
    session.close()
    session.at_close("pull", lambda: done.append(1))
    assert done == [1]
