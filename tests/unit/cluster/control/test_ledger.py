"""Images are published in order, to everybody, and the last changes can be had again."""

from penstock.cluster.control.ledger import DELTAS_KEPT, ImageLedger
from penstock.cluster.image.image import CLUSTER_WIDE, ClusterImage, ImageDelta


def ledger(min_insync_replicas: int = 1) -> ImageLedger:
    image = ClusterImage(cluster_id="c", controller_id=0, controller_epoch=3)
    return ImageLedger(image, min_insync_replicas=min_insync_replicas)


def change(number: int) -> ImageDelta:
    return ImageDelta(configs={("topics", "t"): {"n": str(number)}})


def test_every_subscriber_hears_every_image_in_order() -> None:
    published = ledger()
    first: list[int] = []
    second: list[int] = []
    stop = published.subscribe(lambda image: first.append(image.seq))
    published.subscribe(lambda image: second.append(image.seq))
    published.publish(change(1))
    published.publish(change(2))
    stop()
    published.publish(change(3))
    assert (first, second) == ([1, 2], [1, 2, 3])


def test_nothing_is_published_when_nothing_changed() -> None:
    published = ledger()
    published.publish(ImageDelta())
    assert published.image.seq == 0


def test_a_subscriber_that_fails_does_not_silence_the_others() -> None:
    published = ledger()
    heard: list[int] = []

    def fail(image: ClusterImage) -> None:
        raise RuntimeError("broken part")

    published.subscribe(fail)
    published.subscribe(lambda image: heard.append(image.seq))
    published.publish(change(1))
    assert heard == [1]


def test_the_last_changes_lead_from_an_old_image_to_the_current_one() -> None:
    published = ledger()
    images = [published.image]
    for number in range(5):
        published.publish(change(number))
        images.append(published.image)
    for image in images:
        deltas = published.deltas_since(3, image.seq)
        assert deltas is not None and len(deltas) == 5 - image.seq
        for delta in deltas:
            image = image.apply(delta)
        assert image == published.image


def test_what_is_too_old_or_from_another_epoch_must_be_taken_whole() -> None:
    published = ledger()
    for number in range(DELTAS_KEPT + 5):
        published.publish(change(number))
    assert published.deltas_since(3, 4) is None
    assert len(published.deltas_since(3, 5) or ()) == DELTAS_KEPT
    assert published.deltas_since(2, published.image.seq) is None
    assert published.deltas_since(3, published.image.seq + 1) is None
    assert published.deltas_since(3, published.image.seq) == []


def test_the_minimum_in_sync_comes_from_the_topic_then_the_cluster_then_the_broker() -> None:
    published = ledger(min_insync_replicas=2)
    assert published.min_isr("t", 3) == 2
    published.publish(ImageDelta(configs={("brokers", CLUSTER_WIDE): {"min.insync.replicas": "3"}}))
    assert published.min_isr("t", 3) == 3
    published.publish(ImageDelta(configs={("topics", "t"): {"min.insync.replicas": "1"}}))
    assert published.min_isr("t", 3) == 1
    assert published.min_isr("t", 3, {}) == 3
    assert published.min_isr("other", 2) == 2
