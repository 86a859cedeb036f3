"""Which web pages may ask us: our own alone.

A browser lets any page send simple requests and open WebSockets to any host, also to one that
listens on loopback only, and says in `Origin` whose page it is. Other programs send no such header.
"""


def is_own_page(origin: str | None, host: str | None, advertised: str = "") -> bool:
    """Whether a request comes from no page, or from one of ours."""
    if origin is None:
        return True
    return origin.partition("://")[2] == host or (bool(advertised) and origin == advertised)
