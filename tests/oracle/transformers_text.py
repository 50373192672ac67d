"""What transformers makes of text and conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import pre_tokenizers
from transformers import AutoTokenizer
from transformers.utils.chat_template_utils import render_jinja_template

BOS, EOS = "<s>", "</s>"


def render(template: str, conversation: list[dict[str, Any]], **options: Any) -> str | None:
    """A conversation as `apply_chat_template` renders it, ready for an answer; None where the template refuses."""
    options = {"add_generation_prompt": True, "bos_token": BOS, "eos_token": EOS, **options}
    try:
        rendered, _ = render_jinja_template([conversation], chat_template=template, **options)
    except Exception:  # noqa: BLE001 (templates refuse in any way that Python can fail)
        return None
    return str(rendered[0])


def smollm2_ids(gguf_path: Path, lines: list[str]) -> list[list[int]]:
    """The ids of ordinary text: the vocabulary of the GGUF file, cut as the model's own `tokenizer.json` says.

    transformers reads a GGUF file's tokens and merges, but not the name of its pre-tokenizer.
    """
    tokenizer = AutoTokenizer.from_pretrained(gguf_path.parent, gguf_file=gguf_path.name).backend_tokenizer
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.encode_special_tokens = True
    return [tokenizer.encode(line, add_special_tokens=False).ids for line in lines]
