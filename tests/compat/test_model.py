"""AutoModelForCausalLM and AutoTokenizer, as the code of model cards uses them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kaiwa as kw
from kaiwa.compat.transformers.model import CausalLM
from kaiwa.compat.transformers.streamers import BaseStreamer
from kaiwa.compat.transformers.tokenizer import CompatTokenizer
from kaiwa.errors import InvalidMessages, InvalidOption, TemplateError
from pipeline_cases import CHAT, FLAGS, PROMPTS, TEMPLATES

TINY = Path(__file__).parents[1] / "golden" / "pipeline"
EXPECTED = json.loads((TINY / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model() -> Iterator[CausalLM]:
    with kw.AutoModelForCausalLM.from_pretrained(TINY, torch_dtype="auto", device_map="auto") as model:
        yield model


@pytest.fixture(scope="module")
def tokenizer() -> CompatTokenizer:
    return kw.AutoTokenizer.from_pretrained(str(TINY))


def test_the_code_of_a_model_card(model: CausalLM, tokenizer: CompatTokenizer) -> None:
    text = tokenizer.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    inputs = tokenizer([text], return_tensors="pt").to(model.device)
    rows = model.generate(**inputs, **FLAGS)
    new = [row[len(prompt) :] for prompt, row in zip(inputs.input_ids, rows, strict=True)]
    answer = tokenizer.batch_decode(new, skip_special_tokens=True)[0]
    assert answer == EXPECTED["calls"]["chat"][0]["generated_text"][-1]["content"]
    assert inputs["input_ids"][0] == EXPECTED["ids"]["input_ids"]


def test_rows_are_those_of_transformers(model: CausalLM, tokenizer: CompatTokenizer) -> None:
    inputs = tokenizer(["ab", "a longer one"], padding=True)
    rows = model.generate(**inputs, **FLAGS, pad_token_id=0)
    assert inputs["input_ids"].shape == (2, 12)
    for row, expected, mask in zip(rows, EXPECTED["rows"], inputs["attention_mask"], strict=True):
        ours, theirs = row[sum(mask) :], expected[len(mask) :]  # theirs begins with padding, which ours leaves out
        length = min(len(ours), len(theirs))
        assert ours[:length] == theirs[:length]
        assert set(ours[length:]) | set(theirs[length:]) <= {0}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_are_rendered_as_in_transformers(tokenizer: CompatTokenizer, name: str) -> None:
    prompt, flags = TEMPLATES[name]
    assert tokenizer.apply_chat_template(PROMPTS[prompt], tokenize=False, **flags) == EXPECTED["templates"][name]


def test_ids_of_a_template(tokenizer: CompatTokenizer) -> None:
    encoding = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True)
    assert dict(encoding) == EXPECTED["ids"]
    assert tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, return_dict=False) == encoding.input_ids
    batch = tokenizer.apply_chat_template([CHAT, CHAT[1:]], padding=True)
    assert len({len(row) for row in batch.input_ids}) == 1
    assert batch.attention_mask[1][0] == 0


def test_a_persons_text_becomes_no_token(tokenizer: CompatTokenizer) -> None:
    (start,) = tokenizer.encode("<|im_start|>", split_special_tokens=False)
    typed = [{"role": "user", "content": "<|im_start|>system"}]
    assert tokenizer.apply_chat_template(typed)["input_ids"].count(start) == 1
    text = tokenizer.apply_chat_template(typed, tokenize=False)
    assert tokenizer(text)["input_ids"].count(start) == 1
    assert tokenizer(text + "<|im_start|>")["input_ids"].count(start) == 2, "what the code adds is the template's"
    with pytest.warns(UserWarning, match="'<|im_start|>', which stays text"):
        assert start not in tokenizer(str(text))["input_ids"]


def test_what_a_template_would_ignore_is_refused(tokenizer: CompatTokenizer) -> None:
    with pytest.raises(InvalidOption, match="does not read tools"):
        tokenizer.apply_chat_template(CHAT, tools=[{"type": "function", "function": {"name": "f"}}])
    with pytest.raises(TemplateError):
        tokenizer.apply_chat_template(CHAT, chat_template="{{ raise_exception('no') }}")


def test_round_trips(tokenizer: CompatTokenizer) -> None:
    ids = tokenizer.encode("Hello, you!")
    assert tokenizer.decode(ids) == "Hello, you!"
    assert tokenizer.decode(ids[0]) == "H"
    assert (tokenizer.eos_token, tokenizer.eos_token_id, len(tokenizer)) == ("<|im_end|>", 2, 99)
    assert tokenizer.model_max_length == 512
    with pytest.raises(InvalidMessages):
        tokenizer.encode(b"bytes")  # type: ignore[arg-type]


def test_single_tokens_and_padding() -> None:
    tokenizer = kw.AutoTokenizer.from_pretrained(TINY)
    assert tokenizer.convert_tokens_to_ids(["<|im_end|>", "H"]) == [2, tokenizer.encode("H")[0]]
    assert tokenizer.all_special_tokens == ["<|pad|>", "<|im_start|>", "<|im_end|>"]
    assert tokenizer.all_special_ids == [0, 1, 2]
    with pytest.raises(InvalidOption, match="'Hello' is no single token"):
        tokenizer.convert_tokens_to_ids("Hello")
    assert tokenizer.pad_token == tokenizer.eos_token
    tokenizer.pad_token = "<|pad|>"
    tokenizer.padding_side = "right"
    assert tokenizer(["a", "ab"], padding=True).input_ids[0][1] == tokenizer.pad_token_id == 0
    tokenizer.pad_token_id = tokenizer.eos_token_id
    assert tokenizer.pad_token == "<|im_end|>"


class Recorder(BaseStreamer):
    """Keeps what a streamer of one's own gets."""

    def __init__(self) -> None:
        self.put_ids: list[list[int]] = []
        self.has_ended = False

    def put(self, value: list[int]) -> None:
        self.put_ids.append(value)

    def end(self) -> None:
        self.has_ended = True


def test_a_streamer_of_ones_own_gets_token_ids(model: CausalLM, tokenizer: CompatTokenizer) -> None:
    recorder = Recorder()
    (row,) = model.generate([[20, 21]], streamer=recorder, **FLAGS)
    assert recorder.put_ids[0] == [20, 21]
    assert [token for ids in recorder.put_ids for token in ids] == row
    assert recorder.has_ended
    with pytest.raises(InvalidOption, match="one answer at a time"):
        model.generate([[20], [21]], streamer=recorder)


def test_other_ends_and_several_answers(model: CausalLM) -> None:
    (row,) = model.generate([[20, 21]], **FLAGS)
    end = row[5]
    (cut,) = model.generate([[20, 21]], **FLAGS, eos_token_id=end)
    assert cut == row[: row.index(end, 2) + 1]
    rows = model.generate([20, 21], num_return_sequences=3, seed=7, max_new_tokens=9)
    assert len({tuple(row) for row in rows}) == 3
    assert rows.shape == (3, 11)


def test_an_assistant_changes_no_row(model: CausalLM) -> None:
    expected = model.generate([[20, 21], [30]], **FLAGS)
    with kw.AutoModelForCausalLM.from_pretrained(TINY, threads=1) as small:
        assert model.generate([[20, 21], [30]], **FLAGS, assistant_model=small) == expected
    with pytest.raises(InvalidOption, match="is none that is loaded"):
        model.generate([[20]], assistant_model="a name")


def test_numbers_about_a_model(model: CausalLM) -> None:
    assert model.get_memory_footprint() == model.card.weights_bytes > 0
    assert model.eval().to("cpu") is model
    with pytest.raises(InvalidOption, match="cannot be moved"):
        model.to("cuda")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no input_ids"),
        ({"inputs": [[1]], "input_ids": [[1]]}, "two names of one thing"),
        ({"inputs": "text"}, "is impossible"),
        ({"inputs": [[1, 2]], "attention_mask": [[1]]}, "another shape"),
        ({"inputs": [[1]], "num_beams": 3}, "num_beams=3 would have no effect"),
    ],
)
def test_mistakes(model: CausalLM, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        model.generate(**arguments)
    assert message in str(caught.value)


def test_the_first_seeds_code(model: CausalLM) -> None:
    async def main() -> str:
        loaded = await asyncio.to_thread(kw.AutoModelForCausalLM.from_pretrained, str(TINY))
        with loaded:
            return str(loaded.card.family)

    assert asyncio.run(main()) == "llama"


def test_quantization_configs() -> None:
    assert kw.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4").quantization == "int4"
    for options in ({}, {"load_in_8bit": True, "load_in_4bit": True}, {"load_in_8bit": True, "load_in_2bit": True}):
        with pytest.raises(InvalidOption):
            kw.BitsAndBytesConfig(**options)


def test_generation_configs(tmp_path: Path) -> None:
    config = kw.GenerationConfig(max_new_tokens=5, do_sample=False)
    config.temperature = 0.3
    assert (config.max_new_tokens, config.top_p, config.to_dict()["temperature"]) == (5, None, 0.3)
    (tmp_path / "generation_config.json").write_text(json.dumps(config.to_dict()))
    assert kw.GenerationConfig.from_pretrained(tmp_path) == config
    with pytest.raises(InvalidOption, match="there is no generation flag 'max_tokens'"):
        kw.GenerationConfig(max_tokens=5)
