"""What a handler raises to answer with an error: a status, a code of its service, a sentence."""

from collections.abc import Mapping
from typing import Any, ClassVar

from penstock.errors import PenstockError

OPEN_PATHS = ("/-/ready", "/-/health")  # What supervises a service need not know a password.


class HttpError(PenstockError):
    """An answer that is an error; `code` is what the service's clients look at."""

    status: ClassVar[int] = 500

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: int | None = None,  # None: the status is all there is to say.
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.answer_status = type(self).status if status is None else status
        self.code = self.answer_status if code is None else code
        self.headers = dict(headers or {})


class BadBody(HttpError):
    """The body is not what it says it is."""

    status = 400


class NotAcceptable(HttpError):
    """None of the media types that the client takes is offered."""

    status = 406


class BodyTooSlow(HttpError):
    """The body did not arrive in time."""

    status = 408

    def __init__(self, timeout_s: float) -> None:
        super().__init__(
            f"The body did not arrive within {timeout_s:g} s.", headers={"connection": "close"}
        )


class BodyTooLarge(HttpError):
    """The body is larger than the service takes; the connection ends, the rest is not read."""

    status = 413

    def __init__(self, bytes_max: int) -> None:
        super().__init__(
            f"The body is larger than {bytes_max} bytes.", headers={"connection": "close"}
        )


class UnsupportedMedia(HttpError):
    """The body has a media type that the handler does not take."""

    status = 415


def plain_document(error: HttpError) -> dict[str, Any]:
    """An error as Confluent's services write it; a service may have a form of its own."""
    return {"error_code": error.code, "message": str(error)}


class Unauthorized(HttpError):
    """The request does not prove who sends it."""

    status = 401

    def __init__(self, scheme: str, realm: str) -> None:
        quoted = realm.replace("\\", "\\\\").replace('"', '\\"')
        super().__init__("Unauthorized", headers={"www-authenticate": f'{scheme} realm="{quoted}"'})
