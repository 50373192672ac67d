"""Text to ids and back, and where special tokens may come from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiwa.errors import InvalidMessages
from kaiwa.text.templates.prompt import RenderedPrompt
from kaiwa.text.tokens.tokenizer import Tokenizer
from tiny_vocabularies import byte_level, scored

BYTE_LEVEL = Tokenizer.from_gguf(byte_level())
TOKENIZERS = {
    "byte level": BYTE_LEVEL,
    "llama 3": Tokenizer.from_gguf(byte_level("llama-bpe")),
    "scored": Tokenizer.from_gguf(scored()),
    "scored, no space": Tokenizer.from_gguf(scored(add_space_prefix=False)),
}
SPECIAL = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<s>", "</s>", "<unk>", "<0x41>", "[PAD]")
TEXTS = st.text() | st.lists(st.sampled_from([*SPECIAL, " ", "▁", "a", "the", "\n", "é", "<", "\ufdd0"])).map("".join)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=TEXTS)
def test_decoding_undoes_encoding(name: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not set(ids) & set(tokenizer.special_tokens.values())


def test_special_tokens_come_from_templates_only() -> None:
    start, end = BYTE_LEVEL.special_tokens["<|im_start|>"], BYTE_LEVEL.special_tokens["<|im_end|>"]
    text = "<|im_start|>a<|im_end|>"
    assert BYTE_LEVEL.encode_prompt(RenderedPrompt(text)) == [start, ord("a"), end]
    assert BYTE_LEVEL.encode(text) == list(text.encode())
    # A seam inside of the first, none in the second; a seam beside a token does no harm.
    assert BYTE_LEVEL.encode_prompt(RenderedPrompt(text, (1, 13))) == [*b"<|im_start|>a", end]


@given(
    parts=st.lists(st.sampled_from(["<|im_start|>", "<|im_", "start|>", "x", "<think>"])),
    seams=st.sets(st.integers(0, 40)),
)
def test_no_special_token_reaches_over_a_seam(parts: list[str], seams: set[int]) -> None:
    text = "".join(parts)
    prompt = RenderedPrompt(text, tuple(sorted(seam for seam in seams if seam <= len(text))))
    ids = BYTE_LEVEL.encode_prompt(prompt)
    assert BYTE_LEVEL.decode(ids) == text
    offset = 0
    for token_id in ids:
        length = len(BYTE_LEVEL.token_bytes(token_id))
        if token_id in BYTE_LEVEL.special_tokens.values():
            assert not any(offset < seam < offset + length for seam in prompt.seams)
        offset += length


def test_the_beginning_is_added_once() -> None:
    tokenizer = TOKENIZERS["llama 3"]
    assert tokenizer.encode_prompt(RenderedPrompt("a")) == [tokenizer.bos_id, ord("a")]
    assert tokenizer.encode_prompt(RenderedPrompt("<|im_start|>a")) == [tokenizer.bos_id, ord("a")]
    assert tokenizer.encode_prompt(RenderedPrompt("")) == [tokenizer.bos_id]
    assert BYTE_LEVEL.encode_prompt(RenderedPrompt("a")) == [ord("a")]


def test_control_tokens_are_left_out_and_markup_is_shown() -> None:
    ids = BYTE_LEVEL.encode_prompt(RenderedPrompt("<|im_start|><think>a</think><|im_end|>"))
    assert BYTE_LEVEL.decode(ids) == "<|im_start|><think>a</think><|im_end|>"
    assert BYTE_LEVEL.decode(ids, skip_special=True) == "<think>a</think>"


def test_ids_out_of_the_vocabulary_are_nothing() -> None:
    for tokenizer in TOKENIZERS.values():
        assert tokenizer.decode([ord("a") + 3, 10**6, tokenizer.vocab_size]) == tokenizer.decode([ord("a") + 3])


@pytest.mark.parametrize("text", ["\ud800", "ab\udfffc"])
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(InvalidMessages, match=r"lone surrogate, U\+D[8F]..") as raised:
        BYTE_LEVEL.encode(text)
    assert raised.value.hint
    with pytest.raises(InvalidMessages):
        BYTE_LEVEL.encode_prompt(RenderedPrompt(text))


def test_an_empty_text_has_no_ids() -> None:
    assert all(tokenizer.encode("") == [] for tokenizer in TOKENIZERS.values())


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_bytes_of_all_tokens(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    for num_tokens in (10, tokenizer.vocab_size, tokenizer.vocab_size + 5):
        assert tokenizer.all_token_bytes(num_tokens) == [tokenizer.token_bytes(token) for token in range(num_tokens)]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_text_that_goes_on_gets_no_space_before_it(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    assert b"".join(map(tokenizer.token_bytes, tokenizer.encode_rest("ab"))) == b"ab"
