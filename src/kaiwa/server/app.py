"""The server as an ASGI application: the table of endpoints, inside the layers that guard it."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kaiwa.runtime.pool.model_pool import ModelPool
from kaiwa.server import description, embeddings, gauges, health, models, tokens
from kaiwa.server.access import Access
from kaiwa.server.body import read
from kaiwa.server.chat import endpoint as chat
from kaiwa.server.completions import endpoint as completions
from kaiwa.server.endpoint import Endpoint
from kaiwa.server.guard import Guard
from kaiwa.server.messages import endpoint as messages
from kaiwa.server.responses import endpoint as responses
from kaiwa.server.serving import Serving
from kaiwa.server.settings import ServerSettings

ENDPOINTS: tuple[Endpoint, ...] = (
    *chat.ENDPOINTS,
    *completions.ENDPOINTS,
    *responses.ENDPOINTS,
    *messages.ENDPOINTS,
    *embeddings.ENDPOINTS,
    *models.ENDPOINTS,
    *tokens.ENDPOINTS,
    *health.ENDPOINTS,
    *gauges.ENDPOINTS,
)


def create_app(pool: ModelPool, settings: ServerSettings | None = None) -> Starlette:
    """An application that answers with the models of a pool. Whoever made the pool closes it."""
    settings = settings or ServerSettings()
    serving = Serving(pool, settings)
    by_path: dict[str, list[Endpoint]] = {}
    for endpoint in (*ENDPOINTS, *description.endpoints(ENDPOINTS)):
        by_path.setdefault(endpoint.path, []).append(endpoint)
    return Starlette(
        routes=[_route(serving, path, endpoints) for path, endpoints in by_path.items()],
        middleware=[Middleware(Access, requests=serving.metrics.requests), Middleware(Guard, settings=settings)],
        exception_handlers={HTTPException: _raise},
    )


def _route(serving: Serving, path: str, endpoints: list[Endpoint]) -> Route:
    by_method: dict[str, Endpoint] = {endpoint.method: endpoint for endpoint in endpoints}

    async def answer(request: Request) -> Response:
        endpoint = by_method["GET" if request.method == "HEAD" else request.method]
        request.state.route = path
        if endpoint.takes is None:
            return await endpoint.handle(serving, request)
        return await endpoint.handle(serving, request, await read(request, endpoint.takes, serving.settings))

    return Route(path, answer, methods=list(by_method))


async def _raise(request: Request, error: Exception) -> Response:
    """Leave what the router raises to the outermost layer, which has the words for it."""
    raise error
