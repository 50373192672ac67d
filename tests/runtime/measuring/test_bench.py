"""Measurements: each runtime in its own process, in turn, and numbers that hang together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kaiwa.errors import InvalidOption, KaiwaError, MissingExtra
from kaiwa.runtime.measuring import bench
from kaiwa.runtime.measuring.bench import measure
from kaiwa.runtime.measuring.contenders import Contender, Loaded, Run, Task, installed_llama_cpp, load_kaiwa
from required import absent


def test_the_numbers_hang_together(model_path: Path) -> None:
    told: list[tuple[int, int]] = []
    report = measure(
        model_path, threads=1, prompt_tokens=48, new_tokens=8, runs=2, on_run=lambda *run: told.append(run)
    )
    assert told == [(1, 2), (2, 2)]
    assert report.threads == 1
    assert "1 thread" in report.card.engine
    assert 0 < report.kaiwa.decode_tokens_per_s < report.kaiwa.prompt_tokens_per_s
    assert report.kaiwa.peak_bytes > report.card.weights_bytes == report.active_weights_bytes > 80_000_000
    assert 0 < report.first_token_s < 5
    assert report.bandwidth_bytes_per_s > 1e9
    assert 0 < report.limit_share < 1.2, "no faster than memory, but for what caches hold"
    assert (report.peer, report.prompt_ratio, report.decode_ratio) == (None, None, None)
    assert json.loads(json.dumps(report.to_dict()))["kaiwa"]["name"] == "kaiwa"


def test_a_peer_on_the_same_file(model_path: Path) -> None:
    try:
        installed_llama_cpp()
    except MissingExtra as error:
        absent(str(error))
    report = measure(model_path, threads=1, prompt_tokens=48, new_tokens=8, runs=1, against="llama.cpp")
    assert report.peer is not None
    assert report.peer.name.startswith("llama.cpp (")
    assert report.peer.peak_bytes > 80_000_000
    assert report.prompt_ratio == report.kaiwa.prompt_tokens_per_s / report.peer.prompt_tokens_per_s
    assert report.decode_ratio == report.kaiwa.decode_tokens_per_s / report.peer.decode_tokens_per_s


def test_an_unknown_peer_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(InvalidOption, match=r"no runtime 'lama\.cpp'") as caught:
        measure("no-such-model", against="lama.cpp")
    assert caught.value.hint == "did you mean 'llama.cpp'?"


@pytest.mark.parametrize("wrong", [{"prompt_tokens": 0}, {"prompt_tokens": 2048}, {"new_tokens": 1}, {"runs": 0}])
def test_impossible_numbers_are_refused(wrong: dict[str, int]) -> None:
    [name] = wrong
    with pytest.raises(InvalidOption, match=f"{name}="):
        measure("no-such-model", **wrong)  # type: ignore[arg-type]


def test_no_run_can_use_what_an_earlier_one_read() -> None:
    text_ids = list(range(90))
    prompts = [bench._text(text_ids, number, 512) for number in range(50)]
    assert {len(prompt) for prompt in prompts} == {512}
    assert len({prompt[0] for prompt in prompts}) == 50


def test_an_error_in_the_child_arrives_with_its_hint(tmp_path: Path) -> None:
    with pytest.raises(KaiwaError, match="there is no file or folder"):
        Contender(load_kaiwa, tmp_path / "nothing.gguf", threads=1, context_length=64)


def dies(path: str, threads: int, context_length: int) -> tuple[Loaded, Run]:
    raise SystemExit(3)


def fails(path: str, threads: int, context_length: int) -> tuple[Loaded, Run]:
    def run(task: Task) -> tuple[float, float]:
        raise RuntimeError("out of luck")

    return Loaded("unlucky", 0.0), run


def test_a_child_that_dies_or_fails_says_so() -> None:
    with pytest.raises(KaiwaError, match="ended without an answer"):
        Contender(dies, Path("x"), threads=1, context_length=64)
    with Contender(fails, Path("x"), threads=1, context_length=64) as racer:
        assert racer.loaded.name == "unlucky"
        with pytest.raises(KaiwaError, match="RuntimeError: out of luck"):
            racer.run(Task([1], 1))
