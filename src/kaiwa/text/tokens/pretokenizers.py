"""How byte-level BPE cuts text before merging, by the names that GGUF files give it (`tokenizer.ggml.pre`).

The patterns are those in the models' own `tokenizer.json` files; the names are llama.cpp's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer as LibraryPreTokenizer

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CASED = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+{suffix}"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*{suffix}"
    r"|\p{N}{digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_DIGIT = r"\p{N}"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _REST
_QWEN2 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST
_QWEN35 = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEKKEN = _CASED.replace("{suffix}", "").replace("{digits}", "")
_GPT4O = _CASED.replace("{suffix}", _CONTRACTIONS + "?").replace("{digits}", "{1,3}")
# DeepSeek's first two generations: letters that have a case, signs of ASCII and their wide twins, one script at a time.
_CASED_WORD = r"\s?[\p{Lu}\p{Ll}\p{Lt}]+"
_WIDE_SIGNS = r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+"
_HAN_AND_MORE = r"[\x{0800}-\x{9FA5}\x{AC00}-\x{D7FF}]+"
_HAN_AND_KANA = r"[\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+"
_DEEPSEEK3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """Patterns that isolate pieces of text one after the other.

    `keeps_words` takes a whole piece as one token where the vocabulary has it, whatever the merges say.
    """

    patterns: tuple[str, ...]
    keeps_words: bool = False
    adds_bos: bool = False


_KINDS: dict[PreTokenizer, str] = {
    PreTokenizer((_GPT2,)): "gpt-2 phi-2 mpt olmo jais exaone4 modern-bert gigachat a.x-4.0 mellum trillion",
    PreTokenizer((_DIGIT, _GPT2)): "smollm starcoder refact command-r codeshell exaone minerva-7b",
    PreTokenizer((_LLAMA3,), keeps_words=True, adds_bos=True): (
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2"
    ),
    PreTokenizer((_LLAMA3,)): "dbrx smaug-bpe chatglm-bpe",
    PreTokenizer((_LLAMA3,), keeps_words=True): "glm4 glm5",
    PreTokenizer((_QWEN2,)): "qwen2 deepseek-r1-qwen stablelm2 megrez kormo hunyuan solar-open grok-2",
    PreTokenizer((_QWEN35,)): "qwen35",
    PreTokenizer((_TEKKEN,), keeps_words=True, adds_bos=True): "tekken",
    PreTokenizer((_GPT4O,)): "gpt-4o llama4 kanana2 minimax-m2",
    PreTokenizer((r"[\r\n]", _CASED_WORD, _WIDE_SIGNS, r"\s+$", _HAN_AND_MORE, _DIGIT)): "deepseek-llm",
    PreTokenizer((r"\p{N}{1,3}", _HAN_AND_KANA, _DEEPSEEK3)): "deepseek-v3 hunyuan-dense joyai-llm",
}

BY_NAME: dict[str, PreTokenizer] = {name: kind for kind, names in _KINDS.items() for name in names.split()}


def build(kind: PreTokenizer) -> LibraryPreTokenizer:
    """The pre-tokenizer as the `tokenizers` library's object."""
    from tokenizers import Regex, pre_tokenizers

    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in kind.patterns]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([*splits, byte_level])
