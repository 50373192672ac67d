from __future__ import annotations

from kaiwa.apps.builtin import make_app
from kaiwa.apps.testing import AppTester
from kaiwa.runtime.loading import DEFAULT_MODEL


def test_the_built_in_app_offers_models_and_sampling() -> None:
    with AppTester(make_app()) as tester:
        chat = tester.start()
        widgets = {widget.id: widget for widget in chat.state.tabs[0].widgets}
        assert DEFAULT_MODEL in [choice.value for choice in widgets["model"].choices]  # type: ignore[union-attr]
        assert chat.state.settings["model"] == DEFAULT_MODEL
        assert {"system", "temperature", "top_p", "top_k", "max_new_tokens"} <= set(widgets)
        chat.set(temperature=0.5, top_k=40, system="Be brief.")
        chat.wait(lambda: chat.state.settings["top_k"] == 40)
