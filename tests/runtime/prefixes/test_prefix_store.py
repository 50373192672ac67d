"""What was read outlives a restart, in files that nobody has to trust."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kaiwa.errors import CacheFailed, KaiwaError
from kaiwa.runtime.prefixes.prefix_store import PrefixStore
from kaiwa.runtime.stream import collect
from small_model import echoes, model

QUESTION = "What do you say to this? " * 10


def ask(folder: Path, question: str = QUESTION, *, client: str = "somebody") -> int:
    """Ask a model that has just started; the number of cached tokens."""
    with model(echoes(), cache_dir=folder) as llm:
        reply = llm.chat(question, client=client)
        assert reply.text == question
        return reply.usage.cached_tokens


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.kv"))


def test_a_conversation_goes_on_after_a_restart(tmp_path: Path) -> None:
    assert ask(tmp_path) == 0
    assert ask(tmp_path) > 200
    assert ask(tmp_path, QUESTION[:150] + "and more") > 140, "what is equal is used"
    assert ask(tmp_path, client="another") == 0
    assert not list(tmp_path.glob("*/.*")), "no file is left half written"


def test_whose_it_is_is_not_written(tmp_path: Path) -> None:
    ask(tmp_path, client="sk-secret-key")
    assert b"sk-secret-key" not in b"".join(path.read_bytes() for path in files(tmp_path))


def test_a_longer_conversation_takes_the_place_of_its_beginning(tmp_path: Path) -> None:
    with model(echoes(), cache_dir=tmp_path) as llm:
        turns: list[dict[str, str]] = []
        for number in range(3):
            turns.append({"role": "user", "content": f"question {number} " * 20})
            turns.append({"role": "assistant", "content": llm.chat(turns).text})
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("place", [0, 9, 20, 60, -1])
def test_a_damaged_file_is_passed_over_and_said(tmp_path: Path, place: int, caplog: pytest.LogCaptureFixture) -> None:
    ask(tmp_path)
    [path] = files(tmp_path)
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content if place >= 0 else content[:-3])
    with caplog.at_level(logging.WARNING):
        assert ask(tmp_path) == 0
    assert path.name in caplog.text


def test_a_file_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    ask(tmp_path)
    with model(echoes(), cache_dir=tmp_path) as llm:
        files(tmp_path)[0].unlink()
        assert llm.chat(QUESTION, client="somebody").usage.cached_tokens == 0


def slow_disk(folder: Path) -> Path:
    """Make a pipe of the one file there: whoever reads it waits until somebody opens it to write."""
    [path] = files(folder)
    path.unlink()
    os.mkfifo(path)
    return path


def test_other_answers_go_on_while_a_file_is_read(tmp_path: Path) -> None:
    ask(tmp_path)
    with model(echoes(), cache_dir=tmp_path) as llm:
        pipe = slow_disk(tmp_path)
        waiting = llm.stream(QUESTION, client="somebody")
        left = llm.stream(QUESTION + "?", client="somebody")
        assert llm.chat("Meanwhile", client="another").text == "Meanwhile"
        assert llm.chat("Between", client="somebody").text == "Between"
        left.close()
        pipe.open("wb").close()
        assert collect(waiting).text == QUESTION, "a file that cannot be read is passed over"


def test_a_model_is_closed_while_a_file_is_read(tmp_path: Path) -> None:
    ask(tmp_path)
    llm = model(echoes(), cache_dir=tmp_path)
    pipe = slow_disk(tmp_path)
    stream = llm.stream(QUESTION, client="somebody")
    opening = threading.Timer(0.1, lambda: pipe.open("wb").close())
    opening.start()
    llm.close()
    opening.join()
    with pytest.raises(KaiwaError, match="was closed"):
        list(stream)


def test_models_of_equal_shapes_and_other_weights_share_nothing(tmp_path: Path) -> None:
    info = echoes().info
    first = PrefixStore(tmp_path, replace(info, fingerprint="one"))
    first.write([1] * 100, "", b"what the first one saved")
    first.flush()
    assert PrefixStore(tmp_path, replace(info, fingerprint="another")).find([1] * 50, "") is None
    longer = replace(info, fingerprint="one", cache_tokens=9, name="with other threads")
    assert PrefixStore(tmp_path, longer).find([1] * 50, "") is not None


def test_it_is_bounded_and_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    info = echoes().info
    store = PrefixStore(tmp_path, info, max_bytes=10_000)
    for number in range(3):
        store.write([number] * 100, "", bytes(3500))
        store.flush()
    assert store.find([0] * 50, "") is None
    kept = store.find([1] * 50, "")
    assert kept is not None
    assert store.read(kept[0]) == bytes(3500)
    store.write([3] * 100, "", bytes(3500))
    store.flush()
    assert [store.find([number] * 50, "") is not None for number in range(4)] == [False, True, False, True]
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 10_000


def test_a_folder_that_cannot_be_used_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheFailed, match="cannot keep what was read"):
        PrefixStore(tmp_path / "file", echoes().info)
