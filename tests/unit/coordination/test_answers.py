"""Answers under tickets: each is handed over once, in the order in which it was given."""

from penstock.coordination.answers import LateAnswers, Ticket


def test_answers_are_taken_once_and_in_order() -> None:
    answers = LateAnswers()
    first: Ticket[str] = Ticket()
    second: Ticket[str] = Ticket()
    answers.give(second, "b")
    answers.give(first, "a")
    assert answers.take() == [(second, "b"), (first, "a")]
    assert not answers.take()


def test_what_was_taken_stays_as_it_was() -> None:
    answers = LateAnswers()
    taken = answers.take()
    answers.give(Ticket(), "later")
    assert list(taken) == []


def test_two_tickets_are_never_the_same() -> None:
    assert Ticket() != Ticket()
