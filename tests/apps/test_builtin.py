from __future__ import annotations

from kaiwa.apps.builtin import make_app
from kaiwa.apps.testing import AppTester
from kaiwa.runtime.loading.loader import DEFAULT_MODEL


def test_the_built_in_app_offers_models_and_sampling() -> None:
    with AppTester(make_app()) as tester:
        chat = tester.start()
        widgets = {widget.id: widget for widget in chat.state.tabs[0].widgets}
        assert DEFAULT_MODEL in [choice.value for choice in widgets["model"].choices]  # type: ignore[union-attr]
        assert chat.state.settings["model"] == DEFAULT_MODEL
        assert {"system", "temperature", "top_p", "top_k", "max_new_tokens"} <= set(widgets)
        chat.set(temperature=0.5, top_k=40, system="Be brief.")
        chat.wait(lambda: chat.state.settings["top_k"] == 40)


def test_it_speaks_the_language_of_the_browser() -> None:
    with AppTester(make_app()) as tester:
        english, japanese = tester.start(language="en-GB"), tester.start(language="ja-JP")
        other = tester.start(language="fr")
        labels = [[widget.label for widget in chat.state.tabs[0].widgets] for chat in (english, japanese, other)]
        assert [row[:2] for row in labels[:2]] == [["Model", "System prompt"], ["モデル", "システムプロンプト"]]
        assert labels[2] == labels[0]
        assert japanese.welcome is not None
        assert japanese.welcome.app.description.startswith("このマシンのモデル")
