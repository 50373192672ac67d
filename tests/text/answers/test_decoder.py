"""Streamed tokens: whole characters, and the same text as all at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiwa.text.answers.decoder import Decoder
from kaiwa.text.tokens.tokenizer import Tokenizer
from tiny_vocabularies import byte_level, scored

TOKENIZERS = {"byte level": Tokenizer.from_gguf(byte_level()), "scored": Tokenizer.from_gguf(scored())}


def decoded(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    decoder = Decoder(tokenizer)
    return [*(decoder.push(token_id) for token_id in ids), decoder.flush()]


@pytest.mark.parametrize("name", TOKENIZERS)
@given(ids=st.lists(st.integers(0, 280)))
def test_streamed_text_is_the_whole_text(name: str, ids: list[int]) -> None:
    tokenizer = TOKENIZERS[name]
    assert "".join(decoded(tokenizer, ids)) == tokenizer.decode(ids, skip_special=True)


def test_control_tokens_are_shown_to_a_parser_that_asks_for_them() -> None:
    tokenizer = TOKENIZERS["byte level"]
    ids = [tokenizer.special_tokens["<|im_start|>"], ord("a"), tokenizer.special_tokens["<|im_end|>"]]
    decoder = Decoder(tokenizer, shown={"<|im_end|>"})
    assert [decoder.push(token_id) for token_id in ids] == ["", "a", "<|im_end|>"]


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=st.text())
def test_characters_arrive_whole(name: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]
    parts = decoded(tokenizer, tokenizer.encode(text))
    assert "".join(parts) == text
    assert text.count("\ufffd") == sum(part.count("\ufffd") for part in parts)


def test_a_character_is_held_back_until_its_last_byte() -> None:
    tokenizer = TOKENIZERS["byte level"]
    assert decoded(tokenizer, [*"会😀".encode()]) == ["", "", "会", "", "", "", "😀", ""]
    assert decoded(tokenizer, [0xE4, 0xBC]) == ["", "", "\ufffd"]
    assert decoded(tokenizer, [0xE4, ord("a")]) == ["", "\ufffda", ""]


def test_the_space_that_encoding_put_before_is_dropped_once() -> None:
    tokenizer = TOKENIZERS["scored"]
    ids = tokenizer.encode("a a")
    assert decoded(tokenizer, ids) == ["a", " a", ""]


def test_control_tokens_are_not_shown() -> None:
    tokenizer = TOKENIZERS["byte level"]
    start, think = tokenizer.special_tokens["<|im_start|>"], tokenizer.special_tokens["<think>"]
    assert decoded(tokenizer, [start, ord("a"), think]) == ["", "a", "<think>", ""]
