"""Write a tiny model that converses in printable characters, and what transformers' own pipeline makes of it.

`make golden` runs this where transformers is; what changes is then reviewed like code.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, pipeline
from transformers.utils import logging

from pipeline_cases import CALLS, CHAT, FLAGS, PROMPTS, TEMPLATES
from tiny_models import spread_weights

FOLDER = Path(__file__).parents[1] / "golden" / "pipeline"
SPECIAL = ["<|pad|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SEED = 5


def write_model() -> None:
    """A random model and a tokenizer of one token for each printable character."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    letters = [chr(code) for code in range(33, 127)] + ["Ġ", "Ċ"]  # a space and a new line, as byte-level BPE has them
    vocabulary = {text: token_id for token_id, text in enumerate([*SPECIAL, *letters])}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=SPECIAL[2], pad_token=SPECIAL[0], additional_special_tokens=[SPECIAL[1]]
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(FOLDER)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, bos_token_id=None, eos_token_id=2, pad_token_id=0,
        tie_word_embeddings=False,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    spread_weights(model, SEED)
    model.save_pretrained(FOLDER)


def answers() -> dict[str, Any]:
    """What transformers answers to every case."""
    generate = pipeline("text-generation", model=str(FOLDER), dtype=torch.float32)
    tokenizer, model = generate.tokenizer, generate.model
    calls = {name: generate(PROMPTS[prompt], **{**FLAGS, **flags}) for name, (prompt, flags) in CALLS.items()}
    chat = generate(CHAT, **FLAGS)[0]["generated_text"]
    second = generate([*chat, {"role": "user", "content": "And then?"}], **FLAGS)
    inputs = tokenizer(["ab", "a longer one"], return_tensors="pt", padding=True, padding_side="left")
    rows = model.generate(**inputs, **FLAGS)
    return {
        "calls": calls,
        "second turn": second,
        "rows": rows.tolist(),
        "templates": {
            name: tokenizer.apply_chat_template(PROMPTS[prompt], tokenize=False, **flags)
            for name, (prompt, flags) in TEMPLATES.items()
        },
        "ids": dict(tokenizer.apply_chat_template(CHAT, add_generation_prompt=True)),
    }


if __name__ == "__main__":
    logging.set_verbosity_error()
    write_model()
    (FOLDER / "expected.json").write_text(json.dumps(answers(), indent=1) + "\n", encoding="utf-8")
