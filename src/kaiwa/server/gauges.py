"""`/metrics`: what the server counted, and how things stand."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response

from kaiwa.runtime.loading.memory import resident_bytes
from kaiwa.server.endpoint import Endpoint
from kaiwa.server.metrics import MEDIA_TYPE, gauge_lines
from kaiwa.server.serving import Serving


async def metrics(serving: Serving, request: Request) -> Response:
    """All metrics in Prometheus' text format."""
    lines = [*serving.metrics.lines(), *_gauges(serving)]
    return Response("\n".join([*lines, ""]), media_type=MEDIA_TYPE)


def _gauges(serving: Serving) -> Iterator[str]:
    statuses = serving.pool.models()
    yield from gauge_lines(
        "kaiwa_requests_in_flight", "Requests that are answered or wait.", [({}, serving.gate.num_inside)]
    )
    yield from gauge_lines("kaiwa_requests_waiting", "Those of them that wait.", [({}, serving.waiting.number)])
    yield from gauge_lines(
        "kaiwa_model_loaded",
        "Whether a model is in memory.",
        [({"model": status.name}, int(status.card is not None)) for status in statuses],
    )
    yield from gauge_lines(
        "kaiwa_model_memory_bytes",
        "What a model in memory takes, its context full.",
        [({"model": status.name}, status.num_bytes) for status in statuses if status.num_bytes is not None],
    )
    yield from gauge_lines(
        "process_resident_memory_bytes", "Memory of the server's own process.", [({}, resident_bytes())]
    )


ENDPOINTS = (
    Endpoint("GET", "/metrics", metrics, "Counters and durations, for Prometheus", gives=MEDIA_TYPE.split(";")[0]),
)
