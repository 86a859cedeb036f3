"""Requests with long lists: handled piece by piece, answered as a whole."""

import asyncio
import typing
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.dispatch import HANDLERS
from penstock.broker.slices import LISTS, ListField, Within, in_slices
from penstock.protocol.apis import request_class, response_class

FIELDS = ListField("asked", "answered", 10)
WITHIN = ListField("topics", "answers", 10, Within("numbers", "results"))


@dataclass
class Request:
    asked: list[int] | None


@dataclass
class Response:
    answered: list[int]


@dataclass
class Context:
    is_large: bool = False
    handled: list[list[int]] = field(default_factory=list)


def handle(request: Request, context: Context) -> Response:
    assert request.asked is not None
    context.handled.append(request.asked)
    return Response([-number for number in request.asked])


async def handle_later(request: Request, context: Context) -> Response:
    await asyncio.sleep(0)
    return handle(request, context)


def test_a_short_list_goes_straight_to_the_handler() -> None:
    context: Any = Context()
    request = Request(list(range(10)))
    assert in_slices(handle, FIELDS)(request, context).answered == [-n for n in range(10)]
    assert context.handled == [request.asked]
    assert not context.is_large


@pytest.mark.parametrize("handler", [handle, handle_later])
def test_a_long_list_is_handled_in_slices_and_answered_in_order(handler: Any) -> None:
    context: Any = Context()
    request = Request(list(range(25)))
    answer = asyncio.run(in_slices(handler, FIELDS)(request, context))
    assert answer.answered == [-n for n in range(25)]
    assert [len(some) for some in context.handled] == [10, 10, 5]
    assert request.asked == list(range(25))
    assert context.is_large


# Lists within lists


@dataclass
class Topic:
    name: str
    numbers: list[int]


@dataclass
class Topics:
    topics: list[Topic]


@dataclass
class TopicAnswer:
    name: str
    results: list[int]


@dataclass
class TopicAnswers:
    answers: list[TopicAnswer]


def handle_topics(request: Topics, context: Context) -> TopicAnswers:
    context.handled.append([number for topic in request.topics for number in topic.numbers])
    return TopicAnswers(
        [TopicAnswer(topic.name, [-n for n in topic.numbers]) for topic in request.topics]
    )


def test_short_lists_within_a_short_list_go_straight_to_the_handler() -> None:
    context: Any = Context()
    request = Topics([Topic("a", [1, 2, 3]), Topic("b", list(range(7)))])
    assert in_slices(handle_topics, WITHIN)(request, context) == handle_topics(request, Context())
    assert not context.is_large


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 35)), max_size=15))
def test_long_lists_within_a_list_are_answered_as_if_handled_at_once(
    sizes: list[tuple[str, int]],
) -> None:
    request = Topics([Topic(name, list(range(size))) for name, size in sizes])
    expected = handle_topics(request, Context())
    context: Any = Context()

    async def handled() -> TopicAnswers:
        answer = in_slices(handle_topics, WITHIN)(request, context)
        return await answer if asyncio.iscoroutine(answer) else answer

    assert asyncio.run(handled()) == expected
    assert max(map(len, context.handled)) <= 10
    assert context.is_large == (len(context.handled) > 1)
    assert [len(topic.numbers) for topic in request.topics] == [size for _, size in sizes]


@pytest.mark.parametrize("api_key", [key for key, fields in LISTS.items() if fields.within])
def test_the_lists_within_are_fields_of_the_elements(api_key: Any) -> None:
    fields = LISTS[api_key]
    assert fields.within is not None
    asked = typing.get_type_hints(request_class(api_key))[fields.asked]
    answered = typing.get_type_hints(response_class(api_key))[fields.answered]
    for whole, name in ((asked, fields.within.asked), (answered, fields.within.answered)):
        (element,) = typing.get_args(whole)
        assert getattr(element(), name) == []


@pytest.mark.parametrize("api_key", LISTS)
def test_the_lists_are_fields_of_the_messages(api_key: Any) -> None:
    fields = LISTS[api_key]
    assert api_key in HANDLERS
    assert getattr(request_class(api_key)(), fields.asked) == []
    assert getattr(response_class(api_key)(), fields.answered) == []
