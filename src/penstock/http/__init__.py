"""One HTTP stack for every service: routes in, answers out, bounded and stopped in good order.

    routes = [Route("/subjects/{subject:segment}", describe)]
    app = service(routes, Served(offered=["application/json"]))
    async with serving(app, [listen("127.0.0.1", 8081)]) as ports:
        ...

A product writes handlers of Starlette and raises `HttpError`; here are the parts that all of them
share: media types (`negotiation`), paths with encoded slashes (`paths`), bodies within bounds
(`bodies`), errors as documents (`error_answers`), health (`health`), and the server (`server`).
Starlette and uvicorn are imported by this package alone; what a handler needs of them is here.
"""
