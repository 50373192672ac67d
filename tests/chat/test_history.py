"""Conversations on disk: what is saved can be loaded, and nothing else can."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiwa.chat import history
from kaiwa.chat.conversation import Chat
from kaiwa.chat.history import SavedChat
from kaiwa.errors import KaiwaError, UnusableFile
from kaiwa.sampling import Sampling

CHAT = Chat("Be brief.").asked("Hi 🎉").answered("こんにちは", "stop").asked("more").answered("and", "cancelled")
SAVED = SavedChat("smollm2:135m", Sampling(temperature=0.2, stop=("END",), seed=7), CHAT)
NOON = datetime(2026, 11, 30, 12, 0)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "new" / "chat.json"
    history.save(path, SAVED)
    assert history.load(path) == SAVED
    assert json.loads(path.read_text(encoding="utf-8"))["messages"][1] == {"role": "user", "content": "Hi 🎉"}
    assert list(path.parent.iterdir()) == [path]


def test_a_file_is_not_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text("mine")
    with pytest.raises(KaiwaError, match="exists already"):
        history.save(path, SAVED)
    assert path.read_text() == "mine"
    history.save(path, SAVED, overwrite=True)
    assert history.load(path) == SAVED


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KaiwaError, match="cannot be written"):
        history.save(tmp_path / "file" / "chat.json", SAVED)


@given(st.text())
def test_default_names_are_safe_whatever_was_asked(question: str) -> None:
    path = history.default_path(Chat().asked(question), NOON, Path("chats"))
    assert path.name.startswith("2026-11-30-1200")
    assert path.suffix == ".json"
    assert not set(path.name) & set('/\\:*?"<>|\n\0 ')
    assert len(path.stem) <= len("2026-11-30-1200-") + history.MAX_NAME_LETTERS


def test_default_names_are_free(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        path = history.default_path(Chat().asked("What is a cat?"), NOON, tmp_path)
        history.save(path, SAVED)
        names.append(path.name)
    assert names == [f"2026-11-30-1200-what-is-a-cat{end}.json" for end in ("", "-2", "-3")]
    assert sorted(history.saved_names(tmp_path)) == sorted(names)


def test_a_saved_chat_is_found_by_path_and_by_name(tmp_path: Path) -> None:
    kept = tmp_path / "chats" / "cats.json"
    history.save(kept, SAVED)
    assert {history.find(name, kept.parent) for name in (str(kept), "cats", "cats.json")} == {kept}
    with pytest.raises(KaiwaError, match="no saved chat 'cat'") as caught:
        history.find("cat", kept.parent)
    assert caught.value.hint == "did you mean 'cats.json'?"


def _with(**changes: Any) -> dict[str, Any]:
    return {"kaiwa_chat": 1, "model": "m", "settings": {}, "messages": [], **changes}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "'kaiwa_chat' is missing"),
        (json.dumps(_with(kaiwa_chat=2)), "it has version 2"),
        (json.dumps({"kaiwa_chat": 1}), "'model' is missing"),
        (json.dumps(_with(colour="red")), "it has 'colour'"),
        (json.dumps(_with(model=3)), "'model' is 3"),
        (json.dumps(_with(settings=[])), "'settings' is not an object"),
        (json.dumps(_with(settings={"temprature": 1})), "there is no option 'temprature'"),
        (json.dumps(_with(settings={"top_p": 7})), "top_p=7 is impossible"),
        (json.dumps(_with(messages={})), "'messages' is not a list"),
        (json.dumps(_with(messages=[{"role": "assistant", "content": "Hi"}])), "message 0 is from 'assistant'"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "chat.json"
    path.write_text(content)
    with pytest.raises(UnusableFile, match="is not a usable chat file") as caught:
        history.load(path)
    assert reason in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableFile, match="No such file"):
        history.load(tmp_path / "chat.json")
