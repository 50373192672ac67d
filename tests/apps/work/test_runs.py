from __future__ import annotations

import logging

import pytest

import kaiwa as kw
from kaiwa.apps.testing import AppTester
from kaiwa.errors import InvalidOption


def test_the_log_names_the_line_and_shows_a_traceback_only_of_what_nobody_expected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = kw.App()

    @app.on_message
    async def answer(message: kw.Message) -> None:
        if message.content == "ours":
            raise InvalidOption("the temperature is cold", hint="warm it up")
        raise ValueError("the coffee is cold")

    with caplog.at_level(logging.ERROR, "kaiwa.apps"), AppTester(app) as tester:
        chat = tester.start()
        chat.say("ours")
        chat.say("theirs")
        assert chat.texts[1::2] == ["the temperature is cold\n\nwarm it up", "ValueError: the coffee is cold"]
    ours, theirs = caplog.records
    assert ours.exc_info is None
    first, place, hint = ours.getMessage().splitlines()
    assert (first, hint) == ("a run failed: the temperature is cold", "hint: warm it up")
    assert place.startswith(f"at {__file__}:")
    assert place.endswith(".answer")
    assert theirs.exc_info is not None
