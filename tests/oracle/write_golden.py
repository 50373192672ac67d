"""Write the golden files that `make test` compares with: what transformers says, kept beside the tests.

`make golden` runs this where torch and transformers are; what changes is then reviewed like code.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from distributions import CoarseDistributions, log_softmax
from kaiwa.weights import hub
from smollm2 import load_reference, tokenize
from tiny_models import TINY_MODELS, TinyModel, greedy_of, logits_of, make_prompt

GOLDEN = Path(__file__).parents[1] / "golden"
SMALLEST_LEAD = 0.015

HEADS = {"hidden_size": 128, "num_attention_heads": 4, "head_dim": 32, "max_position_embeddings": 4096}
YARN = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 8.0, "original_max_position_embeddings": 512}
LONG = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.5,
    "original_max_position_embeddings": 1024,
    "short_factor": [1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0],
    "long_factor": [1.1, 1.5, 2.5, 4.0, 8.0, 16.0, 32.0, 64.0],
}
ROPES = (
    {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0, "partial_rotary_factor": 0.25},
    {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0},
    {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 512,
    },
    YARN,
    {**YARN, "attention_factor": 1.25},
    {**YARN, "mscale": 1.0, "mscale_all_dim": 0.7},
    {**YARN, "beta_fast": 4.0, "beta_slow": 2.0, "truncate": False, "partial_rotary_factor": 0.5},
    LONG,
    {**LONG, "factor": 16.0},
    {**LONG, "attention_factor": 1.5},
)


def write_family(name: str, tiny: TinyModel) -> None:
    """Write one tiny model as a Hugging Face folder, and what it answers as `expected.npz` inside."""
    folder = GOLDEN / "families" / name
    shutil.rmtree(folder, ignore_errors=True)
    model = tiny.build()
    model.save_pretrained(folder, max_shard_size=tiny.max_shard_size)
    if tiny.has_old_rope_words:
        use_old_rope_words(folder / "config.json")

    for shard in folder.glob("*.safetensors"):
        shard.chmod(0o644)

    saved = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    prompt = make_prompt(saved.config.vocab_size)
    logits = logits_of(saved, prompt)
    np.testing.assert_array_equal(logits, logits_of(model, prompt), err_msg=f"{name} reads otherwise than written")
    greedy, lead = greedy_of(saved, prompt)
    assert lead > SMALLEST_LEAD, f"{name}: a greedy step leads by {lead:.4f} only; choose another seed"
    np.savez(folder / "expected.npz", prompt=prompt, logits=logits, greedy=greedy)
    print(f"{name}: logits spread by {logits.std():.2f}, greedy leads by {lead:.3f}")


def use_old_rope_words(path: Path) -> None:
    """Rewrite a `config.json` in the words of checkpoints from before transformers 5."""
    config = json.loads(path.read_text())
    scaling = config.pop("rope_parameters")
    config["rope_theta"] = scaling.pop("rope_theta")
    config["rope_scaling"] = scaling
    config["torch_dtype"] = config.pop("dtype")
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def write_ropes() -> None:
    """Write what transformers makes of each way to scale a rope: its frequencies, and what multiplies cos and sin."""
    ropes = []
    for parameters in ROPES:
        config = LlamaConfig(**HEADS, rope_parameters=dict(parameters))
        original = config.rope_parameters.get("original_max_position_embeddings", 0)
        for num_tokens in {None, original + 1} if parameters["rope_type"] == "longrope" else {None}:
            compute = ROPE_INIT_FUNCTIONS[parameters["rope_type"]]
            frequencies, magnitude = compute(config, "cpu", seq_len=num_tokens)
            ropes.append({
                "parameters": parameters,
                "is_long": num_tokens is not None,
                "frequencies": frequencies.tolist(),
                "magnitude": float(magnitude),
            })  # fmt: skip
    (GOLDEN / "ropes.json").write_text(json.dumps(ropes, indent=1) + "\n")


def write_smollm2(model_path: Path) -> None:
    """Write what the default model says to `prose.txt` when transformers runs its unpacked weights."""
    prompt = tokenize(model_path, (GOLDEN / "prose.txt").read_text(encoding="utf-8"))
    log_probs = log_softmax(logits_of(load_reference(model_path), prompt))
    surprise = -log_probs[np.arange(len(prompt) - 1), prompt[1:]].mean()
    assert surprise < 4, f"the reference does not understand English ({surprise:.1f} nats): its weights are misread"
    expected = CoarseDistributions.of(log_probs)
    np.savez_compressed(
        GOLDEN / "smollm2_prose.npz", prompt=prompt, token_ids=expected.token_ids, log_probs=expected.log_probs
    )
    print(f"smollm2: {len(prompt)} tokens, {surprise:.2f} nats each")


if __name__ == "__main__":
    for name, tiny in TINY_MODELS.items():
        write_family(name, tiny)
    write_ropes()

    write_smollm2(Path(sys.argv[1]) if len(sys.argv) > 1 else hub.resolve("smollm2:135m"))
