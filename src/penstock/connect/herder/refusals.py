"""What is asked for and cannot be done: a status of HTTP and Apache Connect's sentence for it."""

from penstock.errors import PenstockError


class RequestRefused(PenstockError):
    """The answer to a request is an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class AskElsewhere(PenstockError):
    """Another worker of the group must answer; None: nobody knows which one right now."""

    def __init__(self, url: str | None) -> None:
        super().__init__(f"The worker at {url} must be asked.")
        self.url = url


def connector_not_found(name: str) -> RequestRefused:
    """Most requests that name a connector."""
    return RequestRefused(404, f"Connector {name} not found")


def unknown_connector(name: str, *, colon: bool = False) -> RequestRefused:
    """Requests that change what a connector does; restarts have a colon."""
    return RequestRefused(404, f"Unknown connector{':' if colon else ''} {name}")


def must_be_stopped(name: str) -> RequestRefused:
    """Offsets of a connector that may write them itself."""
    return RequestRefused(
        400,
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be"
        " done for the specified connector by issuing a 'PUT' request to the"
        f" '/connectors/{name}/stop' endpoint",
    )
