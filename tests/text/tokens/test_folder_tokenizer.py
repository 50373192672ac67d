"""Tokenizers of Hugging Face checkpoints: the library's own ids, but no special tokens from what people type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from kaiwa.errors import UnsupportedFormat, UnusableFile
from kaiwa.text.templates.prompt import RenderedPrompt
from kaiwa.text.tokens.tokenizer import Tokenizer
from tiny_vocabularies import byte_characters

BYTES = {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
SPECIAL = [AddedToken("<unk>", special=True), AddedToken("<s>", special=True), AddedToken("</s>", special=True)]


def byte_level() -> tokenizers.Tokenizer:
    """As GPT-2's and Qwen's files are."""
    vocab = {character: byte for byte, character in enumerate(byte_characters())} | {"ab": 256}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab, [("a", "b")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken("<|im_start|>", special=True), AddedToken("<think>"), AddedToken("  ")])
    return tokenizer


def metaspace(scheme: str) -> tokenizers.Tokenizer:
    """As newer files of Llama 2 and Mistral are."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2, **BYTES, "▁": 259, "a": 260, "b": 261, "▁a": 262}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab, [("▁", "a")], unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    strip = [decoders.Strip(" ", 1, 0)] if scheme != "never" else []
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    tokenizer.add_tokens(SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def prepending() -> tokenizers.Tokenizer:
    """As older files of Llama 2 are."""
    tokenizer = metaspace("always")
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\x00", "isolated")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return tokenizer


def unigram() -> tokenizers.Tokenizer:
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), ("▁", -1.0), ("a", -2.0), ("b", -2.0), ("▁ab", -2.5)]
    pieces += [("<", -5.0), ("s", -5.0), (">", -5.0)]
    tokenizer = tokenizers.Tokenizer(models.Unigram(pieces, 0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.add_tokens(SPECIAL)
    return tokenizer


KINDS = {
    "byte level": byte_level,
    "metaspace first": lambda: metaspace("first"),
    "metaspace always": lambda: metaspace("always"),
    "metaspace never": lambda: metaspace("never"),
    "prepending": prepending,
    "unigram": unigram,
}


TAKE_A_SPACE_AS_THEIRS = ("metaspace first", "metaspace always", "unigram")
"""The library puts no space before a text that begins with one, and so the two are the same to it."""


def saved(tokenizer: tokenizers.Tokenizer, folder: Path, **config: Any) -> Path:
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>", **config}))
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["", "a", " a", "ab a", "a  b", "ab", "a ab b "])
def test_ordinary_text_has_the_ids_of_the_library(kind: str, text: str, tmp_path: Path) -> None:
    reference = KINDS[kind]()
    tokenizer = Tokenizer.from_folder(saved(reference, tmp_path))
    assert tokenizer.encode(text) == reference.encode(text, add_special_tokens=False).ids
    if not (text.startswith(" ") and kind in TAKE_A_SPACE_AS_THEIRS):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.vocab_size == reference.get_vocab_size()


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_have_the_ids_of_the_library(kind: str, tmp_path: Path) -> None:
    reference = KINDS[kind]()
    tokenizer = Tokenizer.from_folder(saved(reference, tmp_path))
    text = "<|im_start|>a b  a<think>ab" if kind == "byte level" else "<s>a b</s>ab a<s> a"
    assert tokenizer.encode_prompt(RenderedPrompt(text)) == reference.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("kind", KINDS)
def test_typed_special_tokens_are_characters(kind: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_folder(saved(KINDS[kind](), tmp_path))
    for text in tokenizer.special_tokens:
        if kind == "unigram" and text != "<s>":
            continue  # this tiny vocabulary has no letters for the others
        ids = tokenizer.encode(text)
        assert tokenizer.special_tokens[text] not in ids
        assert tokenizer.decode(ids) == text


def test_white_space_of_special_tokens_goes_with_them(tmp_path: Path) -> None:
    reference = byte_level()
    reference.add_tokens([AddedToken("<l>", lstrip=True, special=True), AddedToken("<r>", rstrip=True, special=True)])
    tokenizer = Tokenizer.from_folder(saved(reference, tmp_path))
    text = "a \n<l> a <r>\n b"
    assert tokenizer.encode_prompt(RenderedPrompt(text)) == reference.encode(text).ids


def test_what_stands_beside_it_is_read(tmp_path: Path) -> None:
    folder = saved(metaspace("first"), tmp_path, chat_template="{{ 1 }}", eos_token={"content": "</s>"})
    tokenizer = Tokenizer.from_folder(folder, end_ids=[7])
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.end_ids, tokenizer.adds_bos) == (1, 2, {2, 7}, True)
    assert tokenizer.chat_template == "{{ 1 }}"
    assert tokenizer.encode_prompt(RenderedPrompt("a")) == [1, 262]
    saved(metaspace("first"), tmp_path, add_bos_token=False)
    (tmp_path / "chat_template.jinja").write_text("{{ 2 }}")
    assert Tokenizer.from_folder(folder).chat_template == "{{ 2 }}"
    assert not Tokenizer.from_folder(folder).adds_bos


def test_of_several_templates_the_default_is_taken(tmp_path: Path) -> None:
    named = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    assert Tokenizer.from_folder(saved(byte_level(), tmp_path, chat_template=named)).chat_template == "d"


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFormat, match=r"no tokenizer\.json") as raised:
        Tokenizer.from_folder(tmp_path)
    assert raised.value.hint
    for content in (
        "{broken",
        "[]",
        "{}",
        '{"model": {"type": "BPE"}}',
        '{"model": {"type": "Unheard"}}',
        '{"model": 3}',
        '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": [{"content": "b"}]}',
        '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": 7}',
    ):
        (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(UnusableFile, match=r"tokenizer\.json is not a usable"):
            Tokenizer.from_folder(tmp_path)


def test_the_token_that_closes_a_text(tmp_path: Path) -> None:
    closing = metaspace("first")
    closing.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    assert Tokenizer.from_folder(saved(closing, tmp_path)).closing_id == 2
    assert Tokenizer.from_folder(saved(metaspace("first"), tmp_path)).closing_id is None
