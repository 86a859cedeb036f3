"""Answers of controllers become images, in order; what is old or does not fit is refused."""

from dataclasses import replace

import pytest

from penstock.cluster.image.follower import ImageFollower
from penstock.cluster.image.image import (
    ClusterImage,
    ImageDelta,
    PartitionImage,
    PartitionState,
    TopicImage,
)
from penstock.cluster.image.wire import encode_deltas, encode_image
from penstock.errors import ControllerMoved
from penstock.protocol.messages.image_fetch import ImageFetchResponse
from penstock.protocol.primitives import MalformedMessage

DELTA = ImageDelta(configs={("topics", "t"): {"a": "1"}})


def image(epoch: int = 3, seq: int = 7) -> ClusterImage:
    return ClusterImage(cluster_id="c", controller_epoch=epoch, seq=seq)


def snapshot(of: ClusterImage) -> ImageFetchResponse:
    return ImageFetchResponse(
        controller_epoch=of.controller_epoch,
        seq=of.seq,
        is_snapshot=True,
        payload=encode_image(of),
    )


def changes(epoch: int, seq: int, *deltas: ImageDelta) -> ImageFetchResponse:
    return ImageFetchResponse(controller_epoch=epoch, seq=seq, payload=encode_deltas(list(deltas)))


@pytest.fixture
def follower() -> ImageFollower:
    made = ImageFollower()
    made.take(snapshot(image()))
    return made


def asked(follower: ImageFollower) -> tuple[int, int]:
    request = follower.request(1, 2, max_wait_ms=500)
    assert (request.broker_id, request.broker_epoch, request.max_wait_ms) == (1, 2, 500)
    return request.controller_epoch, request.seq


def test_it_asks_for_what_follows_on_what_it_has(follower: ImageFollower) -> None:
    assert asked(ImageFollower()) == (-1, -1)
    assert asked(follower) == (3, 7)
    assert follower.take(changes(3, 9, DELTA, DELTA)) == image().apply(DELTA).apply(DELTA)
    assert asked(follower) == (3, 9)


def test_an_older_controller_is_refused(follower: ImageFollower) -> None:
    for answer in (snapshot(image(epoch=2, seq=99)), ImageFetchResponse(controller_epoch=2)):
        with pytest.raises(ControllerMoved, match=r"epoch 2 speaks, .* epoch 3"):
            follower.take(answer)
    with pytest.raises(ControllerMoved):
        follower.take_own(image(epoch=2))
    assert follower.image == image()


def test_a_newer_controller_begins_anew(follower: ImageFollower) -> None:
    assert follower.take(snapshot(image(epoch=4, seq=1))) == image(epoch=4, seq=1)
    assert asked(follower) == (4, 1)


def test_what_it_has_already_is_not_news(follower: ImageFollower) -> None:
    assert follower.take(snapshot(image(seq=6))) is None
    assert follower.take(snapshot(image())) is None
    assert follower.take(ImageFetchResponse(controller_epoch=3, seq=7)) is None
    assert follower.take_own(image()) is None
    assert follower.image == image()


@pytest.mark.parametrize(
    "answer",
    [
        changes(3, 7, DELTA),  # One that it has, again.
        changes(3, 9, DELTA),  # One is missing.
        changes(4, 8, DELTA),  # Changes of an image it never had.
        changes(
            3,
            8,
            ImageDelta(
                partitions={
                    ("none", 0): PartitionImage(
                        replicas=(1,),
                        state=PartitionState(leader=1, leader_epoch=0, isr=(1,), min_isr=1),
                    )
                }
            ),
        ),
        ImageFetchResponse(controller_epoch=3, seq=8, payload=b"\x00rubbish"),
    ],
)
def test_changes_that_do_not_lead_on_are_refused_and_all_is_asked_for(
    follower: ImageFollower, answer: ImageFetchResponse
) -> None:
    with pytest.raises(MalformedMessage):
        follower.take(answer)
    assert follower.image == image()
    assert asked(follower) == (3, -1)
    assert follower.take(snapshot(image(seq=8))) == image(seq=8)
    assert asked(follower) == (3, 8)


def test_an_image_that_is_not_the_one_announced_is_refused(follower: ImageFollower) -> None:
    answer = snapshot(image(epoch=4))
    answer.controller_epoch = 5
    with pytest.raises(MalformedMessage):
        follower.take(answer)


def test_a_controller_in_this_process_is_followed_too(follower: ImageFollower) -> None:
    own = image(epoch=5, seq=2)
    assert follower.take_own(own) is own
    assert asked(follower) == (5, 2)


def test_a_whole_image_shares_with_the_last_one_what_is_equal(follower: ImageFollower) -> None:
    state = PartitionState(leader=0, leader_epoch=0, isr=(0,), min_isr=1)
    partitions = dict.fromkeys(range(3), PartitionImage(replicas=(0,), state=state))
    topic = TopicImage(name="t", topic_id=b"t" * 16, partitions=partitions)
    first = follower.take(snapshot(image(epoch=4).apply(ImageDelta(topics={"t": topic}))))
    assert first is not None
    second = follower.take(snapshot(replace(first, controller_epoch=5)))
    assert second == replace(first, controller_epoch=5)
    assert second.topics["t"] is first.topics["t"]
