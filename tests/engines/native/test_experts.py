"""Mixtures of experts: what each token gets, whatever else is in the batch, and what is never read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from driving import loaded
from gguf_reference import write_checkpoint
from kaiwa.engines.engine import Engine, Slice
from kaiwa.engines.native import _native
from kaiwa.engines.native.engine import NativeEngine
from kaiwa.errors import UnsupportedModel
from number_formats import BY_NAME, random_weights, unpack_with_gguf
from published_layouts import mxfp4
from test_families import FAMILIES, Expected

MIXTURES = ["mixtral", "qwen2-moe", "qwen2-moe-some", "qwen3-moe", "gpt-oss"]
HUGE = 3e38
"""A weight that leaves no number finite. A weight that is no number is refused as it is loaded."""

HIDDEN, WIDTH, SHARED_WIDTH, NUM_EXPERTS, NUM_CHOSEN = 64, 96, 160, 6, 2


@dataclass(frozen=True, slots=True)
class Step:
    """One mixture by itself: six experts of which two are chosen, and a wider one that all tokens share."""

    format: str
    router: np.ndarray
    shared_gate: np.ndarray
    experts: list[list[np.ndarray]]
    """Gate, up and down of each, the shared one last."""
    packed: list[list[_native.Matrix]]
    inputs: np.ndarray

    @classmethod
    def random(cls, format: str, num_tokens: int) -> Step:
        rng = np.random.default_rng(3)
        experts, packed = [], []
        for expert in range(NUM_EXPERTS + 1):
            width = SHARED_WIDTH if expert == NUM_EXPERTS else WIDTH
            experts.append([])
            packed.append([])
            for rows, columns in ((width, HIDDEN), (width, HIDDEN), (HIDDEN, width)):
                data = random_weights(BY_NAME[format], rows, columns, rng)
                experts[-1].append(unpack_with_gguf(BY_NAME[format], data, rows, columns))
                packed[-1].append(_native.Matrix(format, data, rows, columns))
        router, gate = (rng.standard_normal((rows, HIDDEN), dtype=np.float32) / 4 for rows in (NUM_EXPERTS, 1))
        inputs = rng.standard_normal((num_tokens, HIDDEN), dtype=np.float32)
        return cls(format, router, gate, experts, packed, inputs)

    def run(self, tokens: list[int], *, threads: int, isa: str) -> np.ndarray:
        """What the step makes of these tokens' inputs, in one batch."""
        pool, cache = _native.ThreadPool(threads), _native.KvCache([], 8, "float16")
        program = _native.Program(pool, cache, _native.StateCache([], 1), 64, isa)
        x, router, gate, out = (program.add_slot(width) for width in (HIDDEN, NUM_EXPERTS, 1, HIDDEN))
        program.embed(_matrix(self.inputs), x)
        parts = [(_matrix(self.router), None, router), (_matrix(self.shared_gate), None, gate)]
        program.linear(x, None, 0.0, parts, False, True)
        program.experts(
            x, None, 0.0, router, gate, [(*three, None, None, None) for three in self.packed],
            num_chosen=NUM_CHOSEN, renormalized=False, scale=1.5, expert_scales=[], sigmoid=False, choice_biases=[],
            num_groups=1, num_chosen_groups=1, activation="silu", out=out, accumulate=False,
        )  # fmt: skip
        blocks = _native.BlockTable(cache)
        blocks.append(0), blocks.append(1)
        program.run(tokens, [(0, len(tokens), blocks, False, False, -1, -1, 0)], list(range(len(tokens))))
        return np.array(program.read(out, len(tokens)))

    def expected(self, token: int) -> np.ndarray:
        """The same in float64."""
        x = self.inputs[token].astype(np.float64)
        scores = np.exp(self.router @ x)
        weights = 1.5 * scores / scores.sum()
        chosen = np.argsort(weights)[-NUM_CHOSEN:]
        total = _feed_forward(self.experts[-1], x) / (1 + np.exp(-self.shared_gate @ x))
        for expert in chosen:
            total = total + weights[expert] * _feed_forward(self.experts[expert], x)
        return total


def _matrix(values: np.ndarray) -> _native.Matrix:
    return _native.Matrix("F32", values.astype("<f4").tobytes(), *values.shape)


def _feed_forward(expert: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    gate, up, down = (matrix.astype(np.float64) for matrix in expert)
    return down @ (gate @ x / (1 + np.exp(-gate @ x)) * (up @ x))


@pytest.mark.parametrize("format", ["F32", "F16", "Q8_0", "Q4_1"])
@pytest.mark.parametrize("num_tokens", [1, 2, 3, 40])
def test_a_mixture_of_narrow_experts_and_a_wide_shared_one(format: str, num_tokens: int, isa: str) -> None:
    step = Step.random(format, 40)
    tokens = list(range(num_tokens))
    found = step.run(tokens, threads=2, isa=isa)
    expected = np.stack([step.expected(token) for token in tokens])
    bound = 1e-4 if BY_NAME[format].block_size == 1 else 0.02  # inputs of 8 bits
    assert np.abs(found - expected).max() < bound * np.abs(expected).max()


@pytest.mark.parametrize("format", ["F32", "Q8_0"])
def test_a_token_gets_the_same_bits_in_every_batch_and_with_any_number_of_threads(format: str, isa: str) -> None:
    step = Step.random(format, 40)
    alone = np.concatenate([step.run([token], threads=1, isa=isa) for token in range(40)])
    for threads in (1, 2, 3):
        for tokens in (list(range(40)), [7, 7], [3, 31, 5], list(range(39, 9, -1))):
            together = step.run(tokens, threads=threads, isa=isa)
            np.testing.assert_array_equal(together, alone[tokens])


@pytest.fixture(params=[*MIXTURES, "gemma4-experts", "deepseek-v2", "deepseek-v3"])
def mixture(request: pytest.FixtureRequest) -> Iterator[tuple[Engine, Expected]]:
    """An engine with a tiny model, and what transformers says of it."""
    with loaded(FAMILIES / request.param) as engine:
        yield engine, Expected.of(request.param)


def test_logits_do_not_depend_on_the_batch(mixture: tuple[Engine, Expected]) -> None:
    engine, expected = mixture
    assert isinstance(engine, NativeEngine)
    prompt = expected.prompt

    def last_logits(others: int) -> np.ndarray:
        """The logits after `prompt`, its last token computed together with those of other sequences."""
        sequences = [engine.open() for _ in range(others + 1)]
        for number, sequence in enumerate(sequences):
            engine._run([Slice(sequence, [*prompt[number:-1], *prompt[:number]], sample=False)], [0])
        engine._run([Slice(sequence, prompt[-1:]) for sequence in sequences], [1] * len(sequences))
        logits = np.array(engine._native.read(engine._program.logits, len(sequences)))
        for sequence in sequences:
            engine.close(sequence)
        return logits[0]

    alone = last_logits(0)
    for others in (1, 2, 3):
        np.testing.assert_array_equal(last_logits(others), alone)


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("num_copies", [1, 3], ids=["shared work", "a gathered batch"])
def test_an_expert_that_no_token_needs_is_not_read(name: str, num_copies: int, tmp_path: Path) -> None:
    """Weights that would make infinities of everything leave the logits alone, unless the token chose their expert."""
    config = json.loads((FAMILIES / name / "config.json").read_text())
    num_experts = config.get("num_experts") or config["num_local_experts"]
    shutil.copy(FAMILIES / name / "config.json", tmp_path)
    are_finite = []
    for expert in range(num_experts):
        weights = load_file(FAMILIES / name / "model.safetensors")
        for key, tensor in weights.items():
            if key.startswith("model.layers.1.") and f".experts.{expert}." in key:
                tensor[:] = HUGE
            if key.startswith("model.layers.1.mlp.experts.") and tensor.shape[0] == num_experts:  # of all of them
                tensor[expert] = HUGE
        save_file(weights, tmp_path / "model.safetensors")
        with loaded(tmp_path) as engine:
            first = np.asarray(engine.score([Expected.of(name).prompt[0]] * num_copies))[0]
        are_finite.append(bool(np.isfinite(first).all()))
    assert are_finite.count(False) == config["num_experts_per_tok"]


@pytest.mark.parametrize("name", ["mixtral", "qwen3-moe"])
def test_experts_in_one_tensor(name: str, tmp_path: Path) -> None:
    """As transformers keeps them in memory, and newer families on disk: gates above ups, and downs."""
    config = json.loads((FAMILIES / name / "config.json").read_text())
    prefix, gate, up, down = {
        "mixtral": ("block_sparse_moe", "w1", "w3", "w2"),
        "qwen3-moe": ("mlp", "gate_proj", "up_proj", "down_proj"),
    }[name]
    weights = load_file(FAMILIES / name / "model.safetensors")
    for layer in range(config["num_hidden_layers"]):
        experts = f"model.layers.{layer}.{prefix}.experts"

        def all_of(kind: str, experts: str = experts) -> list[np.ndarray]:
            return [weights.pop(f"{experts}.{expert}.{kind}.weight") for expert in range(config["num_local_experts"])]

        gates_and_ups = [np.concatenate(pair) for pair in zip(all_of(gate), all_of(up), strict=True)]
        weights[f"{experts}.gate_up_proj"] = np.stack(gates_and_ups)
        weights[f"{experts}.down_proj"] = np.stack(all_of(down))
    save_file(weights, tmp_path / "model.safetensors")
    shutil.copy(FAMILIES / name / "config.json", tmp_path)
    expected = Expected.of(name)
    with loaded(tmp_path) as engine:
        np.testing.assert_allclose(np.asarray(engine.score(expected.prompt)), expected.logits, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", ["mixtral", "qwen2-moe", "qwen3-moe", "gpt-oss"])
def test_gguf_agrees_with_safetensors(name: str, tmp_path: Path) -> None:
    expected = Expected.of(name)
    write_checkpoint(FAMILIES / name, tmp_path / "model.gguf")
    with loaded(tmp_path / "model.gguf") as engine:
        assert engine.info.number_format == "F32"
        np.testing.assert_allclose(np.asarray(engine.score(expected.prompt)), expected.logits, rtol=0, atol=1e-3)


def test_another_activation_than_the_kernels_is_refused(tmp_path: Path) -> None:
    config = json.loads((FAMILIES / "gpt-oss" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "swiglu_limit": 5.0}))
    shutil.copy(FAMILIES / "gpt-oss" / "model.safetensors", tmp_path)
    with pytest.raises(UnsupportedModel, match=r"swiglu_limit 5\.0"), loaded(tmp_path):
        pass


def test_gpt_oss_as_it_is_published(tmp_path: Path) -> None:
    """Its experts in MXFP4, row by row; beside the same numbers as transformers writes them in single precision."""
    rng = np.random.default_rng(8)
    hidden, width, num_experts = 64, 32, 4
    config = json.loads((FAMILIES / "gpt-oss" / "config.json").read_text())
    config |= {"hidden_size": hidden, "intermediate_size": width, "num_hidden_layers": 1}
    config |= {"layer_types": ["full_attention"], "num_local_experts": num_experts}
    attention, kv = config["num_attention_heads"] * config["head_dim"], 2 * config["head_dim"]
    layer = "model.layers.0"
    shapes = {
        "model.embed_tokens.weight": (256, hidden), "model.norm.weight": (hidden,),
        f"{layer}.input_layernorm.weight": (hidden,), f"{layer}.post_attention_layernorm.weight": (hidden,),
        f"{layer}.self_attn.q_proj.weight": (attention, hidden), f"{layer}.self_attn.k_proj.weight": (kv, hidden),
        f"{layer}.self_attn.v_proj.weight": (kv, hidden), f"{layer}.self_attn.o_proj.weight": (hidden, attention),
        f"{layer}.self_attn.sinks": (4,), f"{layer}.mlp.router.bias": (num_experts,),
        f"{layer}.mlp.router.weight": (num_experts, hidden),
        f"{layer}.mlp.experts.gate_up_proj_bias": (num_experts, 2 * width),
        f"{layer}.mlp.experts.down_proj_bias": (num_experts, hidden),
    }  # fmt: skip
    floats = {name: rng.standard_normal(shape, dtype=np.float32) / 4 for name, shape in shapes.items()}
    published = dict(floats)
    for kind, rows, columns in (("gate_up_proj", 2 * width, hidden), ("down_proj", hidden, width)):
        name = f"{layer}.mlp.experts.{kind}"
        blocks, exponents, means = zip(*(mxfp4(rng, rows, columns) for _ in range(num_experts)), strict=True)
        published |= {f"{name}_blocks": np.stack(blocks), f"{name}_scales": np.stack(exponents)}
        floats[name] = np.ascontiguousarray(np.stack(means).swapaxes(1, 2))
    logits = []
    for kind, weights in (("floats", floats), ("published", published)):
        folder = tmp_path / kind
        folder.mkdir()
        save_file(weights, folder / "model.safetensors")
        settings = {"quantization_config": {"quant_method": "mxfp4"}} if kind == "published" else {}
        (folder / "config.json").write_text(json.dumps(config | settings))
        with loaded(folder) as engine:
            logits.append(np.asarray(engine.score(list(range(4, 40)))))
    assert np.abs(logits[1] - logits[0]).max() < 0.02 * np.abs(logits[0]).max()  # inputs of 8 bits
