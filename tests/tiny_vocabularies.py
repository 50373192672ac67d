"""Tiny vocabularies, as GGUF files describe them."""

from __future__ import annotations

from typing import Any

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def gguf(tokens: list[tuple[str, int]], **fields: Any) -> dict[str, Any]:
    """Metadata of a file with these tokens and their types."""
    described = {"tokens": [text for text, _ in tokens], "token_type": [kind for _, kind in tokens], **fields}
    template = described.pop("chat_template", None)
    return {f"tokenizer.ggml.{key}": value for key, value in described.items()} | {"tokenizer.chat_template": template}


def byte_characters() -> list[str]:
    """GPT-2's character for each byte: bytes that print are themselves, the others follow from U+0100 on."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    characters, shifted = [], 0x100
    for byte in range(256):
        characters.append(chr(byte) if byte in printable else chr(shifted))
        shifted += byte not in printable
    return characters


MERGES = ("Ġ t", "h e", "Ġt he", "1 2", "12 3")


def byte_level(pre: str = "smollm", merges: tuple[str, ...] = MERGES, **fields: Any) -> dict[str, Any]:
    """Byte-level BPE: id of a byte is the byte, merges follow from 256 on, then ChatML's tokens and two of markup."""
    pieces = [(character, NORMAL) for character in byte_characters()]
    pieces += [(merge.replace(" ", ""), NORMAL) for merge in merges]
    pieces += [("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL)]
    pieces += [("<think>", USER_DEFINED), ("</think>", USER_DEFINED), ("[PAD]", UNUSED)]
    first = 256 + len(merges)
    ends = {"bos_token_id": first + 1, "eos_token_id": first + 2}
    return gguf(pieces, **{"model": "gpt2", "pre": pre, "merges": list(merges), **ends, **fields})


def scored(**fields: Any) -> dict[str, Any]:
    """SentencePiece with scores: the higher the score, the earlier the merge. Bytes are ids 3 to 258."""
    pieces: list[tuple[str, int, float]] = [("<unk>", UNKNOWN, 0), ("<s>", CONTROL, 0), ("</s>", CONTROL, 0)]
    pieces += [(f"<0x{byte:02X}>", BYTE, 0) for byte in range(256)]
    words = ["▁", "a", "b", "c", "s", "<", ">", "/", "ab", "bc", "▁a", "▁ab", "▁▁", "s>", "abc", "cc"]
    pieces += [(word, NORMAL, -float(rank)) for rank, word in enumerate(words)]
    tokens = [(text, kind) for text, kind, _ in pieces]
    return gguf(tokens, **{"model": "llama", "scores": [score for *_, score in pieces], **fields})
