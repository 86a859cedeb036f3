"""A broker's side of the pull: answers of the controller become images, in order.

No sockets here: the caller sends `request` and hands the answer to `take`. What a controller of
a lower epoch says is refused, for it has been replaced. Which partitions follow from an image is
for replica/table.py, which takes a partition only when it is strictly newer than what it has.
"""

from penstock.cluster.image.image import ClusterImage, sharing
from penstock.cluster.image.wire import decode_deltas, decode_image
from penstock.errors import ControllerMoved
from penstock.protocol.messages.image_fetch import ImageFetchRequest, ImageFetchResponse
from penstock.protocol.primitives import MalformedMessage

_NONE = -1


class ImageFollower:
    """`image` is the latest there is, None before the first."""

    def __init__(self) -> None:
        self.image: ClusterImage | None = None
        self._is_in_doubt = False  # The next answer must be a whole image.

    @property
    def controller_epoch(self) -> int:
        """The highest epoch seen; -1 before the first image."""
        return self.image.controller_epoch if self.image else _NONE

    def request(self, broker_id: int, broker_epoch: int, max_wait_ms: int) -> ImageFetchRequest:
        """Asks for what follows on the image there is."""
        request = ImageFetchRequest(
            broker_id=broker_id, broker_epoch=broker_epoch, max_wait_ms=max_wait_ms
        )
        request.controller_epoch = self.controller_epoch
        if self.image is not None and not self._is_in_doubt:
            request.seq = self.image.seq
        return request

    def take(self, response: ImageFetchResponse) -> ClusterImage | None:
        """The new image, or None if nothing is new. `response` answers without an error."""
        if response.controller_epoch < self.controller_epoch:
            raise _stale(response.controller_epoch, self.controller_epoch)
        if not response.payload:
            return None
        image = self._snapshot(response) if response.is_snapshot else self._apply_changes(response)
        return self.take_own(image)

    def take_own(self, image: ClusterImage) -> ClusterImage | None:
        """An image of the controller in this very process; None if it is not news."""
        if image.controller_epoch < self.controller_epoch:
            raise _stale(image.controller_epoch, self.controller_epoch)
        self._is_in_doubt = False
        if self.image is not None and _age(image) <= _age(self.image):
            return None
        self.image = image
        return image

    def _snapshot(self, response: ImageFetchResponse) -> ClusterImage:
        image = decode_image(response.payload)
        if _age(image) != (response.controller_epoch, response.seq):
            raise MalformedMessage("the image is not the one its answer announces")
        return image if self.image is None else sharing(self.image, image)

    def _apply_changes(self, response: ImageFetchResponse) -> ClusterImage:
        """Changes count only if they lead from the very image there is to the one announced."""
        image = self.image
        self._is_in_doubt = True  # Until all of them are applied.
        if image is None or response.controller_epoch != image.controller_epoch:
            raise MalformedMessage("changes of an image that is not there")
        deltas = decode_deltas(response.payload)
        if image.seq + len(deltas) != response.seq:
            raise MalformedMessage(
                f"{len(deltas)} changes do not lead from {image.seq} to {response.seq}"
            )
        for delta in deltas:
            try:
                image = image.apply(delta)
            except KeyError as error:
                raise MalformedMessage(f"a change of an unknown topic {error}") from error
        return image


def _age(image: ClusterImage) -> tuple[int, int]:
    return image.controller_epoch, image.seq


def _stale(told: int, known: int) -> ControllerMoved:
    return ControllerMoved(
        f"a controller of epoch {told} speaks, but there has been one of epoch {known}"
    )
