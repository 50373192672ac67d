"""Tokenizers rebuilt from GGUF metadata: the reference's ids, pieces by hand, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kaiwa.errors import UnsupportedFormat, UnusableFile
from kaiwa.text.templates.prompt import RenderedPrompt
from kaiwa.text.tokens.tokenizer import Tokenizer
from kaiwa.weights.open import open_checkpoint
from mixed_lines import mixed_lines
from tiny_vocabularies import CONTROL, NORMAL, USER_DEFINED, byte_level, gguf, scored

GOLDEN = Path(__file__).parents[2] / "golden" / "text"


@pytest.fixture(scope="session")
def smollm2(model_path: Path) -> Tokenizer:
    checkpoint = open_checkpoint(model_path)
    try:
        return Tokenizer.from_gguf(checkpoint.metadata, path=model_path)
    finally:
        checkpoint.close()


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return [tokenizer.token_bytes(token_id).decode("utf-8", "replace") for token_id in tokenizer.encode(text)]


def test_smollm2_gives_the_ids_of_the_reference(smollm2: Tokenizer) -> None:
    with np.load(GOLDEN / "smollm2_ids.npz") as golden:
        expected = np.split(golden["ids"], np.cumsum(golden["lengths"])[:-1])
    lines = mixed_lines()
    assert len(lines) == len(expected) == 1000
    for line, ids in zip(lines, expected, strict=True):
        assert smollm2.encode(line) == ids.tolist(), line
        assert smollm2.decode(ids.tolist()) == line


def test_smollm2_knows_its_special_tokens(smollm2: Tokenizer) -> None:
    assert smollm2.vocab_size == 49152
    assert (smollm2.bos_id, smollm2.eos_id, smollm2.adds_bos) == (1, 2, False)
    assert (smollm2.bos_token, smollm2.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert smollm2.end_ids == {0, 2}
    assert smollm2.special_tokens["<|im_start|>"] == 1
    assert len(smollm2.special_tokens) == 17
    assert smollm2.chat_template is not None


def test_byte_level_by_hand() -> None:
    tokenizer = Tokenizer.from_gguf(byte_level())
    # " the" is Ġ t h e: "Ġ t" goes first, then "h e", then both.
    assert tokenizer.encode("the the") == [ord("t"), 257, 258]
    assert tokenizer.encode("é") == [0xC3, 0xA9]
    assert tokenizer.decode([0xC3, 0xA9, 258]) == "é the"


@pytest.mark.parametrize(
    ("pre", "text", "expected"),
    [
        ("gpt-2", "a 123", ["a", " ", "123"]),
        ("smollm", "a 123", ["a", " ", "1", "2", "3"]),
        ("llama-bpe", "12312", ["123", "12"]),
        ("qwen2", "123", ["1", "2", "3"]),
        ("qwen35", "123", ["1", "2", "3"]),
        ("tekken", "123", ["1", "2", "3"]),
        ("gpt-4o", "12312", ["123", "12"]),
        ("deepseek-v3", "12312", ["123", "12"]),
        ("gpt-2", "the the", ["t", "he", " the"]),
        ("qwen2", ".the the", [".", "t", "he", " the"]),
    ],
)
def test_pretokenizers_cut_before_merging(pre: str, text: str, expected: list[str]) -> None:
    assert pieces(Tokenizer.from_gguf(byte_level(pre)), text) == expected


def test_qwen35_keeps_combining_marks_with_their_letters() -> None:
    merges = ("Ì ģ", "e Ìģ")  # the two bytes of U+0301, then with the letter before it
    text = "e\u0301"
    assert pieces(Tokenizer.from_gguf(byte_level("qwen35", merges)), text) == [text]
    assert pieces(Tokenizer.from_gguf(byte_level("qwen2", merges)), text) == ["e", "\u0301"]


def test_llama3_takes_whole_words_that_no_merge_reaches() -> None:
    metadata = byte_level("llama-bpe", ("a b", "c d", "ab cd"))
    metadata["tokenizer.ggml.merges"] = ["a b", "c d"]
    assert pieces(Tokenizer.from_gguf(metadata), "abcd") == ["abcd"]
    metadata["tokenizer.ggml.pre"] = "qwen2"
    assert pieces(Tokenizer.from_gguf(metadata), "abcd") == ["ab", "cd"]


def test_whether_a_beginning_is_added_follows_the_family_or_the_file() -> None:
    assert not Tokenizer.from_gguf(byte_level("qwen2")).adds_bos
    assert Tokenizer.from_gguf(byte_level("llama-bpe")).adds_bos
    assert Tokenizer.from_gguf(scored()).adds_bos
    assert not Tokenizer.from_gguf(byte_level("llama-bpe", add_bos_token=False)).adds_bos
    closing = Tokenizer.from_gguf(byte_level(add_eos_token=True))
    assert closing.closing_id == closing.eos_id
    assert Tokenizer.from_gguf(byte_level()).closing_id is None


def test_scored_by_hand() -> None:
    tokenizer = Tokenizer.from_gguf(scored())
    # "▁abc": "ab" has the best score, then "▁ab" (its rank is 11, that of "abc" is 14); "c" stays.
    assert pieces(tokenizer, "abc") == [" ab", "c"]
    assert pieces(tokenizer, " a") == [" ", " a"]  # "▁a" is better than "▁▁"
    assert pieces(tokenizer, "accc") == [" a", "cc", "c"]  # among equals the leftmost
    assert pieces(tokenizer, "aé") == [" a", "\ufffd", "\ufffd"]
    assert tokenizer.decode(tokenizer.encode("aé")) == "aé"


def test_scored_without_a_space_before() -> None:
    tokenizer = Tokenizer.from_gguf(scored(add_space_prefix=False))
    assert pieces(tokenizer, "abc") == ["abc"]
    assert tokenizer.decode(tokenizer.encode(" a")) == " a"


def test_scored_puts_a_space_after_special_tokens_as_llama_cpp_does() -> None:
    tokenizer = Tokenizer.from_gguf(scored())
    ids = tokenizer.encode_prompt(RenderedPrompt("<s>ab</s>ab"))
    assert [tokenizer.token_bytes(token_id) for token_id in ids] == [b"<s>", b" ab", b"</s>", b" ab"]


def test_scored_pieces_never_become_control_tokens() -> None:
    tokenizer = Tokenizer.from_gguf(scored(add_space_prefix=False))
    assert pieces(tokenizer, "<s>") == ["<", "s>"]  # "<" and "s>" are pieces, and "<s>" would be their merge


def test_a_typed_space_mark_stays_one() -> None:
    tokenizer = Tokenizer.from_gguf(scored())
    assert tokenizer.decode(tokenizer.encode("a▁b ▁")) == "a▁b ▁"


def test_white_space_tokens_are_taken_first() -> None:
    metadata = scored(add_space_prefix=False)
    metadata["tokenizer.ggml.tokens"] += ["\n\n", "\n"]
    metadata["tokenizer.ggml.token_type"] += [USER_DEFINED, USER_DEFINED]
    metadata["tokenizer.ggml.scores"] += [0.0, 0.0]
    tokenizer = Tokenizer.from_gguf(metadata)
    assert pieces(tokenizer, "a\n\n\nb") == ["a", "\n\n", "\n", "b"]


def test_gemma4_merges_over_space_marks() -> None:
    words = ["▁", "a", "b", "\n", "\n\n", "▁a", "ab"]
    tokens = [("<bos>", CONTROL), ("<eos>", CONTROL), *((word, NORMAL) for word in words)]
    tokens += [(f"<0x{byte:02X}>", 6) for byte in range(256)]
    tokenizer = Tokenizer.from_gguf(
        gguf(tokens, model="gemma4", merges=["▁ a", "a b", "\n \n"], bos_token_id=0, eos_token_id=1)
    )
    assert pieces(tokenizer, "ab a\n\nb") == ["ab", " a", "\n\n", "b"]
    assert tokenizer.decode(tokenizer.encode("é ab")) == "é ab"
    assert tokenizer.adds_bos


def test_phi3_gives_line_breaks_to_the_special_token_before_them() -> None:
    prompt = RenderedPrompt("<|im_start|>\n a")
    named = {**byte_level(), "general.name": "Phi-3-mini"}
    assert Tokenizer.from_gguf(named).encode_prompt(prompt) == [262, ord("a")]
    assert Tokenizer.from_gguf(byte_level()).encode_prompt(prompt) == [262, ord("\n"), 0x20, ord("a")]


def test_ends_of_turns_are_found_by_name_and_by_key() -> None:
    assert Tokenizer.from_gguf(byte_level(eot_token_id=5)).end_ids == {261, 263, 5}


def test_harmony_messages_do_not_end_a_turn() -> None:
    names = ["<|end|>", "<|return|>", "<|call|>", "a"]
    tokens = [(name, CONTROL) for name in names[:3]] + [("a", NORMAL), ("aa", NORMAL)]
    metadata = gguf(tokens, model="gpt2", pre="gpt-4o", merges=["a a"], eos_token_id=1)
    assert Tokenizer.from_gguf(metadata).end_ids == {1, 2}


def without(metadata: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name != f"tokenizer.ggml.{key}"}


@pytest.mark.parametrize(
    ("metadata", "error", "words"),
    [
        (byte_level("martian"), UnsupportedFormat, "model.gguf .* pre-tokenizer is 'martian'"),
        (without(byte_level(), "pre"), UnsupportedFormat, "does not say how text is cut"),
        (byte_level(model="bert"), UnsupportedFormat, "kind 'bert'"),
        (without(byte_level(), "tokens"), UnusableFile, "no tokenizer"),
        (without(byte_level(), "merges"), UnusableFile, "no tokenizer.ggml.merges"),
        (without(scored(), "scores"), UnusableFile, "no tokenizer.ggml.scores"),
        (byte_level(merges=("a b",), token_type=[1]), UnusableFile, "263 tokens but 1 values"),
        ({**byte_level(), "tokenizer.ggml.merges": ["zz y"]}, UnusableFile, "merges do not fit"),
        ({**byte_level(), "tokenizer.ggml.merges": ["nospace"]}, UnusableFile, "merges do not fit"),
        ({**byte_level(), "tokenizer.ggml.merges": [7]}, UnusableFile, "merges"),
        (byte_level(token_type="x"), UnusableFile, "token_type"),
        (scored(scores=3), UnusableFile, "scores"),
    ],
)
def test_what_cannot_be_used_is_said(metadata: dict[str, Any], error: type[UnusableFile], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        Tokenizer.from_gguf(metadata, path="model.gguf")
    assert raised.value.hint


def test_an_unknown_pretokenizer_lists_the_known_ones() -> None:
    with pytest.raises(UnsupportedFormat) as raised:
        Tokenizer.from_gguf(byte_level("martian"))
    assert {"llama-bpe", "qwen2", "qwen35", "smollm", "gpt-2"} <= set(raised.value.hint.replace(",", "").split())
