"""Model families against what transformers says of the same tiny models: `tests/golden/families`."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from safetensors.numpy import load_file, save_file

from driving import GREEDY, continue_greedily, loaded, next_token, next_tokens, start
from gguf_reference import write_checkpoint
from kaiwa.engines.engine import Slice
from kaiwa.errors import ContextOverflow, UnsupportedModel

FAMILIES = Path(__file__).parents[2] / "golden" / "families"
NAMES = sorted(folder.name for folder in FAMILIES.iterdir())


@dataclass(frozen=True, slots=True)
class Expected:
    """What transformers says of one model. Logits: float32, after each token of the prompt."""

    prompt: list[int]
    logits: np.ndarray
    greedy: list[int]
    """The 64 tokens that greedy decoding adds."""

    @classmethod
    def of(cls, name: str) -> Expected:
        with np.load(FAMILIES / name / "expected.npz") as file:
            return cls(file["prompt"].tolist(), file["logits"], file["greedy"].tolist())


@pytest.mark.parametrize("name", NAMES)
def test_logits_of_a_prompt(name: str, isa: str) -> None:
    expected = Expected.of(name)
    with loaded(FAMILIES / name) as engine:
        logits = np.asarray(engine.score(expected.prompt))
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, expected.logits, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chunk", [512, 7, 1], ids=["whole", "in chunks", "step by step"])
def test_greedy_text(name: str, chunk: int, isa: str) -> None:
    expected = Expected.of(name)
    prompt, greedy = expected.prompt, expected.greedy
    with loaded(FAMILIES / name) as engine:
        sequence, token = start(engine, prompt, chunk=chunk)
        assert continue_greedily(engine, sequence, token, len(greedy)) == greedy
        assert engine.length(sequence) == len(prompt) + len(greedy) - 1


@pytest.mark.parametrize("name", NAMES)
def test_sequences_in_one_batch_do_not_meet(name: str, isa: str) -> None:
    expected = Expected.of(name)
    prompt, greedy = expected.prompt, expected.greedy
    short = prompt[5:18]
    with loaded(FAMILIES / name) as engine:
        alone = continue_greedily(engine, *start(engine, short), 24)
        first, second = engine.open(), engine.open()
        for sequence, prompt_ids in ((first, prompt), (second, short)):
            engine.configure(sequence, GREEDY, prompt_ids=prompt_ids)
        # The second joins while the first is still reading, and decodes while the first reads on.
        assert engine.step([Slice(first, prompt[:11], sample=False)]) == [None]
        nothing, sampled = engine.step([Slice(first, prompt[11:30], sample=False), Slice(second, short)])
        assert nothing is None
        assert sampled is not None
        texts: tuple[list[int], list[int]] = ([], [*sampled.token_ids])
        unread = prompt[30:]
        while len(texts[1]) < len(alone):
            batch = [Slice(second, texts[1][-1:]), Slice(first, unread or texts[0][-1:])]
            unread = []
            for text, token in zip(reversed(texts), next_tokens(engine, *batch), strict=True):
                text.append(token)
    assert texts[0] == greedy[: len(texts[0])]
    assert texts[1] == alone


@pytest.mark.parametrize("name", NAMES)
def test_truncating_takes_tokens_back(name: str) -> None:
    expected = Expected.of(name)
    prompt, greedy = expected.prompt, expected.greedy
    with loaded(FAMILIES / name) as engine:
        sequence, token = start(engine, [*prompt, *greedy[:20], 9, 8, 7])
        engine.truncate(sequence, len(prompt) + 4)
        engine.configure(sequence, GREEDY, prompt_ids=prompt)
        text = [*prompt, *greedy[:5]]
        token = next_token(engine, sequence, text[engine.length(sequence) :])
        assert continue_greedily(engine, sequence, token, 30) == greedy[5:35]


def test_a_closed_sequence_leaves_the_others_alone() -> None:
    expected = Expected.of("llama-tied")
    prompt, greedy = expected.prompt, expected.greedy
    with loaded(FAMILIES / "llama-tied") as engine:
        gone, _ = start(engine, prompt[::-1])
        kept, token = start(engine, prompt)
        engine.close(gone)
        start(engine, prompt[3:])
        assert continue_greedily(engine, kept, token, 32) == greedy[:32]


@pytest.mark.parametrize("name", [
    "llama-tied", "llama3-rope", "mistral-full", "qwen2", "qwen3", "smollm3", "ministral3", "gemma3",
    "phi3-crossing", "phi4-long", "qwen3.5", "qwen3.5-moe", "gemma4", "gemma4-keys-as-values", "gemma4-experts",
    "deepseek-v2",
])  # fmt: skip
def test_gguf_agrees_with_safetensors(name: str, tmp_path: Path) -> None:
    expected = Expected.of(name)
    write_checkpoint(FAMILIES / name, tmp_path / "model.gguf")
    with loaded(tmp_path / "model.gguf") as engine:
        logits = np.asarray(engine.score(expected.prompt))
        text = continue_greedily(engine, *start(engine, expected.prompt), len(expected.greedy))
    np.testing.assert_allclose(logits, expected.logits, rtol=0, atol=1e-3)
    assert text == expected.greedy


@pytest.mark.parametrize("name", ["deepseek-v2", "deepseek-v3"])
@pytest.mark.parametrize("is_old", [False, True], ids=["a matrix for each head", "one matrix for all heads"])
def test_gguf_of_deepseek_in_both_layouts(name: str, is_old: bool, tmp_path: Path) -> None:
    """The file has no key for V3's mscale, which in published models is the same as mscale_all_dim."""
    expected, folder = Expected.of(name), tmp_path / name
    shutil.copytree(FAMILIES / name, folder)
    config = json.loads((folder / "config.json").read_text())
    if "mscale" in config["rope_parameters"]:
        config["rope_parameters"]["mscale"] = config["rope_parameters"]["mscale_all_dim"]
    (folder / "config.json").write_text(json.dumps(config))
    write_checkpoint(folder, tmp_path / "model.gguf", is_old=is_old)
    with loaded(folder) as engine:
        theirs = np.asarray(engine.score(expected.prompt))
    with loaded(tmp_path / "model.gguf") as engine:
        ours = np.asarray(engine.score(expected.prompt))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


def test_gguf_of_deepseek_with_its_heads_keys_in_blocks(tmp_path: Path) -> None:
    """Blocks lie along what becomes rows: they are taken apart, and kept in half precision."""
    config = json.loads((FAMILIES / "deepseek-v2" / "config.json").read_text())
    config["qk_nope_head_dim"] = plain = 32
    config |= {"num_experts_per_tok": 6, "topk_group": 3}  # all, so that no rounding makes other experts of a near tie
    weights, random = load_file(FAMILIES / "deepseek-v2" / "model.safetensors"), np.random.default_rng(5)
    heads, value_dim, rank, turned = 2, config["v_head_dim"], config["kv_lora_rank"], config["qk_rope_head_dim"]
    for layer in range(2):
        name = f"model.layers.{layer}.self_attn"
        weights[f"{name}.q_proj.weight"] = 0.2 * random.standard_normal((heads * (plain + turned), 32), np.float32)
        latent = 0.3 * random.standard_normal((heads, plain + value_dim, rank), np.float32)
        keys = np.ascontiguousarray(latent[:, :plain].swapaxes(1, 2))
        in_blocks = dequantize(quantize(keys, GGMLQuantizationType.Q8_0), GGMLQuantizationType.Q8_0)
        latent[:, :plain] = in_blocks.swapaxes(1, 2)
        weights[f"{name}.kv_b_proj.weight"] = latent.reshape(-1, rank)
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(weights, tmp_path / "model.safetensors")
    write_checkpoint(tmp_path, tmp_path / "model.gguf", formats={"attn_k_b": "Q8_0"})
    prompt = Expected.of("deepseek-v2").prompt
    with loaded(tmp_path) as engine:
        expected = np.asarray(engine.score(prompt))
    with loaded(tmp_path / "model.gguf") as engine:
        found = np.asarray(engine.score(prompt))
    assert expected.std() > 1
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.02)


def test_gguf_of_gemma2_divides_queries_by_the_size_of_a_head(tmp_path: Path) -> None:
    """The file has no key for it; our golden model, whose number is another, is first made one that a file can hold."""
    expected, folder = Expected.of("gemma2"), tmp_path / "gemma2"
    shutil.copytree(FAMILIES / "gemma2", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "query_pre_attn_scalar": config["head_dim"]}))
    write_checkpoint(folder, tmp_path / "model.gguf")
    with loaded(folder) as engine:
        theirs = np.asarray(engine.score(expected.prompt))
    with loaded(tmp_path / "model.gguf") as engine:
        ours = np.asarray(engine.score(expected.prompt))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_weights_and_cache_in_float16(name: str, tmp_path: Path, isa: str) -> None:
    """Only float32 models keep a float32 cache. Rounding weights and cache moves these logits by up to 0.035.

    Where a prompt's attention is in bfloat16, keys, values and what they meet keep an eighth of the precision.
    """
    expected = Expected.of(name)
    weights: dict[str, np.ndarray] = {}
    for shard in (FAMILIES / name).glob("*.safetensors"):
        weights |= load_file(shard)
    save_file({key: tensor.astype(np.float16) for key, tensor in weights.items()}, tmp_path / "model.safetensors")
    shutil.copy(FAMILIES / name / "config.json", tmp_path)
    with loaded(tmp_path) as engine:
        logits = np.asarray(engine.score(expected.prompt))
    error, coarser = np.abs(logits - expected.logits), 5 if isa == "amx" else 1
    assert error.max() < 0.04 * coarser
    assert error.mean() < 0.003 * coarser


@pytest.mark.parametrize("prefix", ["language_model.model.", "model.language_model."])
def test_the_text_part_of_a_model_that_sees(prefix: str, tmp_path: Path) -> None:
    expected = Expected.of("gemma3")
    text = load_file(FAMILIES / "gemma3" / "model.safetensors")
    tensors = {prefix + name.removeprefix("model."): tensor for name, tensor in text.items()}
    tensors["vision_tower.patch_embedding.weight"] = np.zeros((4, 4), dtype=np.float32)
    save_file(tensors, tmp_path / "model.safetensors")
    config = json.loads((FAMILIES / "gemma3" / "config.json").read_text())
    seeing = {"model_type": "gemma3", "text_config": config, "vision_config": {"model_type": "siglip"}}
    (tmp_path / "config.json").write_text(json.dumps(seeing))
    with loaded(tmp_path) as engine:
        np.testing.assert_allclose(np.asarray(engine.score(expected.prompt)), expected.logits, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"hidden_act": "relu"}, "the activation 'relu' is not known"),
        ({"mlp_bias": True}, "biases in its feed-forward layers"),
        ({"model_type": "gpt2"}, "family 'gpt2'; the built-in engine knows .*gemma2, gemma3_text.*qwen3, .*smollm3"),
    ],
)
def test_what_no_family_does_is_refused(changes: dict[str, object], expected: str, tmp_path: Path) -> None:
    shutil.copytree(FAMILIES / "llama-tied", tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(UnsupportedModel, match=expected), loaded(tmp_path / "model"):
        pass


def test_a_long_sequence_cut_short_turns_by_the_angles_of_a_short_one() -> None:
    expected = Expected.of("phi3-crossing")
    prompt, greedy = expected.prompt, expected.greedy
    with loaded(FAMILIES / "phi3-crossing") as engine:
        sequence, _ = start(engine, [*prompt, *greedy])
        engine.truncate(sequence, 20)
        engine.configure(sequence, GREEDY, prompt_ids=prompt)
        token = next_token(engine, sequence, prompt[20:])
        assert continue_greedily(engine, sequence, token, len(greedy)) == greedy


def test_a_long_and_a_short_sequence_turn_by_their_own_angles_in_one_batch() -> None:
    expected = Expected.of("phi3-crossing")
    prompt, greedy = expected.prompt, expected.greedy
    with loaded(FAMILIES / "phi3-crossing") as engine:
        long, token = start(engine, [*prompt, *greedy[:40]])
        short, other = start(engine, prompt)
        texts = [[token], [other]]
        while len(texts[0]) < 20:
            batch = [Slice(long, texts[0][-1:]), Slice(short, texts[1][-1:])]
            for text, token in zip(texts, next_tokens(engine, *batch), strict=True):
                text.append(token)
    assert texts == [greedy[40:60], greedy[:20]]


def test_a_full_context_is_refused_and_the_sequence_kept() -> None:
    expected = Expected.of("llama-tied")
    prompt, greedy = expected.prompt, expected.greedy
    with loaded(FAMILIES / "llama-tied", context_length=48) as engine:
        assert engine.info.context_length == 48
        sequence, token = start(engine, prompt)
        with pytest.raises(ContextOverflow):
            engine.step([Slice(sequence, prompt[:9])])
        assert engine.length(sequence) == len(prompt)
        assert continue_greedily(engine, sequence, token, 8) == greedy[:8]
