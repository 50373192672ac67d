"""The built-in app of `kaiwa run`: chat with the models that are on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kaiwa.apps.app import App
from kaiwa.apps.content.chat_settings import ChatSettings
from kaiwa.apps.content.reply import reply
from kaiwa.apps.content.widgets import InputWidget, Select, Slider, TextInput
from kaiwa.apps.context import current
from kaiwa.apps.definition import as_default
from kaiwa.apps.languages import Text, in_language
from kaiwa.apps.model import Model
from kaiwa.apps.user_session import user_session
from kaiwa.sampling import Sampling

MAX_ANSWER_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class _Control:
    """An option of sampling as a slider; `whole` ones are whole numbers."""

    name: str
    label: Text
    low: float
    high: float
    step: float
    is_whole: bool = False


_CONTROLS = (
    _Control("temperature", {"en": "Temperature", "ja": "温度"}, 0, 2, 0.05),
    _Control("top_p", "Top p", 0.05, 1, 0.05),
    _Control("top_k", {"en": "Top k (0 is off)", "ja": "Top k, 0 でオフ"}, 0, 200, 1, is_whole=True),
    _Control("min_p", "Min p", 0, 1, 0.01),
    _Control("repetition_penalty", {"en": "Repetition penalty", "ja": "繰り返しペナルティ"}, 0.5, 2, 0.05),
    _Control(
        "max_new_tokens",
        {"en": "Longest answer, in tokens", "ja": "回答の最大トークン数"},
        16,
        MAX_ANSWER_TOKENS,
        16,
        is_whole=True,
    ),
)
_DESCRIPTION = {
    "en": "Chat with a model on this machine. Nothing that you say leaves it.",
    "ja": "このマシンのモデルとチャットします。話した内容が外に出ることはありません。",
}
_MODEL = {"en": "Model", "ja": "モデル"}
_SYSTEM = {"en": "System prompt", "ja": "システムプロンプト"}
_SYSTEM_HINT = {"en": "How the model shall behave", "ja": "モデルにどう振る舞ってほしいか"}


def make_app() -> App:
    """The app, with the models that are there now."""
    from kaiwa.runtime.loading.loader import DEFAULT_MODEL
    from kaiwa.weights import hub

    app = App("Kaiwa", description=_DESCRIPTION)
    names = sorted({DEFAULT_MODEL, *hub.installed()})
    with as_default(app):
        models = {name: Model(name) for name in names}

    @app.on_chat_start
    async def offer_settings() -> None:
        await ChatSettings(_widgets(names, DEFAULT_MODEL, current().session.language)).send()

    @app.on_message
    async def answer() -> None:
        chosen: dict[str, Any] = user_session.get("chat_settings") or {}
        model = models[chosen.get("model") or DEFAULT_MODEL]
        await reply(model, system=chosen.get("system") or "", **_sampling(chosen))

    return app


def _widgets(names: list[str], default: str, language: str) -> list[InputWidget]:
    usual = Sampling().to_dict() | {"max_new_tokens": 1024}
    sliders = [
        Slider(
            control.name,
            in_language(control.label, language),
            initial=usual[control.name],
            min=control.low,
            max=control.high,
            step=control.step,
        )
        for control in _CONTROLS
    ]
    return [
        Select("model", in_language(_MODEL, language), values=names, initial_value=default),
        TextInput(
            "system",
            in_language(_SYSTEM, language),
            placeholder=in_language(_SYSTEM_HINT, language),
            multiline=True,
        ),
        *sliders,
    ]


def _sampling(chosen: dict[str, Any]) -> dict[str, Any]:
    """The options of sampling among a chat's settings."""
    return {
        control.name: int(chosen[control.name]) if control.is_whole else chosen[control.name]
        for control in _CONTROLS
        if control.name in chosen
    }
