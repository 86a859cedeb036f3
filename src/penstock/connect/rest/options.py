"""OPTIONS of every path: the methods that it takes, as Connect's own server tells them."""

from collections.abc import Iterable

from penstock.http.handlers import Request, Response, Route


def with_options(routes: Iterable[Route]) -> list[Route]:
    """These routes, and one more for each of their paths."""
    known = list(routes)
    methods: dict[str, set[str]] = {}
    for route in known:
        methods.setdefault(route.path, {"OPTIONS"}).update(route.methods or ())
    return [*known, *(_telling(path, sorted(taken)) for path, taken in methods.items())]


def _telling(path: str, methods: list[str]) -> Route:
    async def tell(request: Request) -> Response:
        told = ", ".join(methods)
        return Response(told, media_type="text/plain", headers={"Allow": told})

    return Route(path, tell, methods=["OPTIONS"])
