"""The soak of the server, in short: nobody is lost, and nothing is left at work."""

from __future__ import annotations

import asyncio
import time

import server_soak
from live import MODEL, serve
from small_model import says


def test_clients_come_ask_leave_and_vanish() -> None:
    engine = says("An answer that takes a while to say.", delay_s=0.001)
    with serve(engine, max_requests=10) as live:
        host, port = live.url.removeprefix("http://").split(":")
        tally = asyncio.run(server_soak.soak((host, int(port)), MODEL, num_clients=20, seconds=4))
        assert tally.lost == []
        assert tally.in_flight == 0
        assert {"answered", "left", "vanished", "told"} <= set(tally.ends)
        assert tally.ends.total() == tally.num_asked > 50
        before = len(engine.steps)
        time.sleep(0.2)
        assert len(engine.steps) == before, "the engine is idle"
