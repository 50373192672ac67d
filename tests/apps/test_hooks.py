from __future__ import annotations

from typing import Any

import pytest

import kaiwa as kw
from kaiwa.apps.definition import as_default
from kaiwa.apps.hooks import HOOKS, Hooks
from kaiwa.apps.testing import AppTester
from kaiwa.errors import InvalidHook


def two(a: Any, b: Any) -> None: ...


def one(message: Any) -> None: ...


def none() -> None: ...


def named_only(*, message: Any) -> None: ...


@pytest.mark.parametrize("function", [one, none, lambda *everything: None, lambda message, extra=1: None, print])
def test_functions_that_fit(function: Any) -> None:
    Hooks().register("on_message", function)


@pytest.mark.parametrize(("function", "words"), [(two, "takes (a, b)"), (named_only, "takes (*, message)")])
def test_functions_that_do_not_fit_are_refused_where_they_are_registered(function: Any, words: str) -> None:
    with pytest.raises(InvalidHook) as caught:
        Hooks().register("on_message", function)
    assert words in str(caught.value)
    assert "on_message calls its function with (message) or ()" in str(caught.value)
    assert f"{__file__}:" in str(caught.value)
    assert caught.value.hint == f"write def {function.__name__}(message)"


def test_a_hook_that_needs_its_argument() -> None:
    with pytest.raises(InvalidHook, match=r"on_chat_resume calls its function with \(thread\)"):
        Hooks().register("on_chat_resume", none)


def test_two_of_one_kind_are_refused_with_both_places() -> None:
    hooks = Hooks()
    hooks.register("on_message", one)
    with pytest.raises(InvalidHook, match=r"on_message is registered twice: for one .* and for none"):
        hooks.register("on_message", none)


def test_action_callbacks_are_told_apart_by_name() -> None:
    hooks = Hooks()
    hooks.register("action_callback", none, name="a")
    hooks.register("action_callback", none, name="b")
    with pytest.raises(InvalidHook, match="action_callback\\('a'\\) is registered twice"):
        hooks.register("action_callback", one, name="a")
    assert hooks.names_of("action_callback") == ["a", "b"]


def test_an_unknown_hook_offers_the_nearest() -> None:
    with pytest.raises(InvalidHook) as caught:
        Hooks().register("on_mesage", none)
    assert caught.value.hint == "did you mean 'on_message'?"


def test_a_decorator_without_a_function() -> None:
    with pytest.raises(InvalidHook, match="is put above a function, not above 'hello'"):
        kw.App().on_message("hello")  # type: ignore[type-var]


def test_every_hook_has_its_decorators() -> None:
    app = kw.App()
    for hook in HOOKS:
        assert callable(getattr(app, hook.name))
        assert callable(getattr(kw, hook.name))


def test_decorators_of_the_module_act_on_the_default_app() -> None:
    with as_default(kw.App()) as app:
        kw.on_message(none)
        kw.action_callback("press")(none)
    assert app.hooks.find("on_message") is none
    assert app.hooks.find("action_callback", "press") is none


def test_hooks_of_a_chat_from_its_beginning_to_its_end() -> None:
    app, heard = kw.App(), []
    app.on_app_startup(lambda: heard.append("startup"))
    app.on_chat_start(lambda: heard.append("start"))
    app.on_chat_end(lambda: heard.append("end"))
    app.on_app_shutdown(lambda: heard.append("shutdown"))

    @app.on_feedback
    def rate(feedback: kw.Feedback) -> None:
        heard.append((feedback.value, feedback.comment))

    @app.on_window_message
    async def window(data: Any) -> None:
        heard.append(data)
        await kw.send_window_message({"heard": data})

    @app.author_rename
    async def rename(author: str) -> str:
        return author.upper()

    @app.on_message
    async def answer() -> None:
        await kw.Message("hi", author="ann").send()

    with AppTester(app) as tester:
        chat = tester.start()
        last = chat.say("hello")
        assert last.author == "ANN"
        chat.send("rate", message_id=last.id, value=-1, comment="no")
        chat.send("post_window_message", data={"x": 1})
        chat.wait(lambda: any(frame.type == "window_message" for frame in chat.frames))
        chat.leave()
        other = tester.open(chat.id)
        assert other.send("end_chat")
        other.wait(lambda: other.state.is_ended)
        other.say("again")
        assert other.texts[-2:] == ["again", "hi"]
    assert heard == ["startup", "start", (-1, "no"), {"x": 1}, "end", "start", "end", "shutdown"]


def test_a_lost_page_does_not_end_the_chat() -> None:
    app, heard = kw.App(), []
    app.on_chat_end(lambda: heard.append("end"))
    app.on_message(lambda: heard.append("message"))
    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("a")
        chat.leave()
        assert heard == ["message"]


def test_what_an_app_offers_before_a_chat() -> None:
    app = kw.App()
    app.on_message(none)

    @app.set_chat_profiles
    async def profiles(user: Any) -> list[kw.ChatProfile]:
        return [kw.ChatProfile("quick", "**fast**", default=True, starters=[kw.Starter("Go", "go")])]

    @app.set_starters
    def starters() -> list[kw.Starter]:
        return [kw.Starter("Hi", "hello")]

    @app.set_starter_categories
    def categories(user: Any, language: str) -> list[kw.StarterCategory]:
        return [kw.StarterCategory(f"in {language}", starters=[kw.Starter("A", "a")])]

    @app.on_chat_start
    async def start() -> None:
        await kw.Message(str(kw.user_session.get("chat_profile"))).send()

    with AppTester(app) as tester:
        chat = tester.start(profile="quick", language="ja")
        assert chat.welcome is not None
        assert [profile.name for profile in chat.welcome.profiles] == ["quick"]
        assert [(group.label, group.starters[0].label) for group in chat.welcome.starters] == [
            ("", "Hi"),
            ("in ja", "A"),
        ]
        assert chat.last == "quick"


def test_a_broken_offer_leaves_the_page_without(caplog: pytest.LogCaptureFixture) -> None:
    app = kw.App()
    app.on_message(none)

    @app.set_starters
    def starters() -> list[kw.Starter]:
        raise ValueError("none left")

    with AppTester(app) as tester:
        chat = tester.start()
        assert chat.welcome is not None
        assert chat.welcome.starters == ()
    assert "the app could not say what it offers" in caplog.text
