"""Request ids, the log that holds nothing of what people wrote, and the metrics."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from typing import Any

import pytest

from kaiwa.engines.engine import Slice
from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.server.logs import LineFormatter
from live import MODEL, Live, serve
from small_model import END, echoes, says

SECRET = "my name is Sato"


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [record.fields for record in caplog.records if record.name == "kaiwa.server" and hasattr(record, "fields")]


def test_an_id_is_made_or_kept(echo: Live) -> None:
    with echo.http() as client:
        first, second = (client.get("/health").headers["x-request-id"] for _ in range(2))
        assert first != second
        assert client.get("/health", headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
        assert client.get("/nope", headers={"x-request-id": "mine-2"}).headers["x-request-id"] == "mine-2"
        strange = client.get("/health", headers={"x-request-id": "a b;" + "x" * 500}).headers["x-request-id"]
    assert re.fullmatch(r"req_[0-9a-f]{32}", strange)


def test_one_line_for_each_request(echo: Live, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="kaiwa.server"):
        echo.ask(x=1)
        echo.ask(stream=True)
        with echo.http() as client:
            client.get(f"/v1/models/{MODEL}")
            client.get("/what?q=secret")
    seen = [(line["method"], line["route"], line["status"], line.get("code")) for line in lines(caplog)]
    assert seen == [
        ("POST", "/v1/chat/completions", 400, "unknown_parameter"),
        ("POST", "/v1/chat/completions", 200, None),
        ("GET", "/v1/models/{model:path}", 200, None),
        ("GET", "none", 404, "not_found"),
    ]


class Breaks(ScriptedEngine):
    """An engine that fails and says what it read."""

    def step(self, batch: Sequence[Slice]) -> list[Any]:
        raise RuntimeError(f"cannot read {bytes(batch[0].token_ids[:-1])!r}")


def test_nothing_that_people_wrote_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"temperature": SECRET},
        {SECRET: 1},
        {"model": SECRET},
        {"messages": [{"role": SECRET, "content": SECRET}]},
        {"messages": [{"role": "user", "content": SECRET * 1000}]},
        {"stream": True},
    ]
    with caplog.at_level(logging.DEBUG):
        for engine in (echoes(), Breaks(lambda ids: [], end_id=END, vocab_size=258)):
            with serve(engine) as live:
                for body in bodies:
                    live.ask(**{"messages": [{"role": "user", "content": SECRET}], **body})
    logged = [LineFormatter("json").format(record) for record in caplog.records if record.name.startswith("kaiwa")]
    assert len(logged) >= 2 * len(bodies)
    assert "Sato" not in "\n".join(logged)


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_the_two_shapes_of_a_line(log_format: Any) -> None:
    record = logging.LogRecord("kaiwa.server", logging.INFO, "", 0, "request", None, None)
    record.fields = {"route": "/v1/models", "status": 200, "where": 'a "b"\nc'}
    line = LineFormatter(log_format).format(record)
    if log_format == "json":
        assert json.loads(line)["where"] == 'a "b"\nc'
    else:
        assert line.endswith(r'level=info event=request route=/v1/models status=200 where="a \"b\"\nc"')
    assert "\n" not in line


def test_metrics() -> None:
    with serve(echoes()) as live, live.http() as client:
        for _ in range(2):
            live.ask()
        live.ask(temprature=1)
        response = client.get("/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    values = dict(line.rsplit(" ", 1) for line in response.text.splitlines() if not line.startswith("#"))
    assert values['kaiwa_requests_total{route="/v1/chat/completions",status="200"}'] == "2"
    assert values['kaiwa_requests_total{route="/v1/chat/completions",status="400"}'] == "1"
    assert values['kaiwa_answers_total{model="small",finish_reason="stop"}'] == "2"
    assert values['kaiwa_generated_tokens_total{model="small"}'] == "12"
    assert values['kaiwa_prompt_tokens_total{model="small"}'] == "48"
    assert int(values['kaiwa_cached_tokens_total{model="small"}']) > 0
    assert values['kaiwa_time_to_first_token_seconds_count{model="small"}'] == "2"
    assert values['kaiwa_time_to_first_token_seconds_bucket{model="small",le="+Inf"}'] == "2"
    assert values['kaiwa_inter_token_seconds_count{model="small"}'] == "8"
    assert values["kaiwa_requests_in_flight"] == values["kaiwa_requests_waiting"] == "0"
    assert values['kaiwa_model_loaded{model="small"}'] == "1"
    assert int(values["process_resident_memory_bytes"]) > 10**7


def test_pieces_that_come_together_share_the_time_since_those_before() -> None:
    with serve(says("x" * 60, delay_s=0.003)) as live:
        for _ in range(2):  # the first answer teaches how long a step takes
            live.ask(stream=True)
        with live.http() as client:
            lines = client.get("/metrics").text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    name = "kaiwa_inter_token_seconds"
    assert int(values[f'{name}_count{{model="small"}}']) == 2 * 59
    assert int(values[f'{name}_bucket{{model="small",le="0.001"}}']) < 12, "no token comes after no time at all"
