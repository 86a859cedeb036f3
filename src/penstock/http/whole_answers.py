"""Answers of other servers, read whole or not at all.

`HTTPResponse.read` with a bound takes the end of the connection for the end of the body: of a
server that dies while it answers, a part would pass for the whole.
"""

from http.client import HTTPException, HTTPResponse, IncompleteRead


class AnswerTooLarge(HTTPException):
    """A body is larger than whoever asked will take."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"the answer has more than {bytes_max} bytes")


def read_whole(answer: HTTPResponse, bytes_max: int) -> bytes:
    """The body; an HTTPException where the server broke off, or the body is too large."""
    content = answer.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise AnswerTooLarge(bytes_max)
    refuse_cut(answer, content)
    return content


def refuse_cut(answer: HTTPResponse, content: bytes) -> None:
    """IncompleteRead if nothing more comes, and the server had promised more."""
    if answer.length:
        raise IncompleteRead(content, answer.length)
