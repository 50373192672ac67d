"""The torch engine beside transformers' own `generate`, and the rules that every engine keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    BloomForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    Llama4ForCausalLM,
    Llama4TextConfig,
    MambaConfig,
    MambaForCausalLM,
    OlmoConfig,
    OlmoForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    PreTrainedModel,
)
from transformers.utils import logging

import kaiwa as kw
from driving import start
from kaiwa.engines.engine import Slice
from kaiwa.engines.torch.engine import TorchEngine
from kaiwa.engines.torch.loading import load
from kaiwa.errors import ContextOverflow, InvalidOption, OutOfMemory, UnsupportedFormat, UnsupportedModel, UnusableFile
from kaiwa.runtime.pool.model_pool import ModelPool
from kaiwa.runtime.process.model_process import isolated
from kaiwa.sampling import Sampling
from tiny_models import SMALL, TINY_MODELS, make_prompt, spread_weights

pytestmark = pytest.mark.oracle
logging.disable_progress_bar()  # a bar leaves a thread behind

PIPELINE = Path(__file__).parents[1] / "golden" / "pipeline"
GREEDY = Sampling(do_sample=False)
NUM_NEW = 24
FOREIGN = {
    "gpt2": (GPT2LMHeadModel, GPT2Config(vocab_size=256, n_embd=48, n_layer=2, n_head=4, n_positions=256)),
    "gpt_neox": (GPTNeoXForCausalLM, GPTNeoXConfig(**SMALL)),
    "olmo": (OlmoForCausalLM, OlmoConfig(**SMALL)),
    "bloom": (BloomForCausalLM, BloomConfig(vocab_size=256, hidden_size=48, n_layer=2, n_head=4)),
    "llama4": (
        Llama4ForCausalLM,
        Llama4TextConfig(**SMALL, num_local_experts=4, num_key_value_heads=4, head_dim=12, attention_chunk_size=16),
    ),
    "mamba": (MambaForCausalLM, MambaConfig(vocab_size=256, hidden_size=32, num_hidden_layers=2, state_size=8)),
}


def foreign(name: str) -> PreTrainedModel:
    """A random model of a family that the built-in engine does not know."""
    kind, config = FOREIGN[name]
    model = kind(config).eval()
    spread_weights(model, 3)
    return model


@contextmanager
def engine_of(model: PreTrainedModel, **options: int) -> Iterator[TorchEngine]:
    engine = TorchEngine(model, name="cpu", **options)
    try:
        yield engine
    finally:
        engine.shutdown()


def continued(engine: TorchEngine, sequence: int, token: int, count: int) -> list[int]:
    tokens = [token]
    while len(tokens) < count:
        (sampled,) = engine.step([Slice(sequence, tokens[-1:])])
        assert sampled is not None
        tokens.append(sampled.token_ids[0])
    return tokens


def greedy(model: PreTrainedModel, prompt: list[int]) -> list[int]:
    ids = torch.tensor([prompt])
    rows = model.generate(ids, max_new_tokens=NUM_NEW, do_sample=False, eos_token_id=None, pad_token_id=0)
    return rows[0, len(prompt) :].tolist()


@pytest.fixture(scope="module")
def llama() -> PreTrainedModel:
    return TINY_MODELS["llama-tied"].build()


@pytest.fixture
def engine(llama: PreTrainedModel) -> Iterator[TorchEngine]:
    with engine_of(llama) as engine:
        yield engine


PROMPT = make_prompt(256, 0).tolist()


@pytest.mark.parametrize("name", [*TINY_MODELS, *FOREIGN])
def test_it_says_what_generate_says(name: str) -> None:
    model = foreign(name) if name in FOREIGN else TINY_MODELS[name].build()
    prompt = make_prompt(256, 1).tolist()
    expected = greedy(model, prompt)
    with engine_of(model) as engine:
        sequence, token = start(engine, prompt, chunk=7)
        assert continued(engine, sequence, token, NUM_NEW) == expected


@dataclass(frozen=True, slots=True)
class Told:
    """What an engine said of a sequence."""

    token_ids: list[int]
    logprobs: list[float]


def said_in_steps(engine: TorchEngine, *, together: bool) -> list[Told]:
    """Five conversations in steps that take all of them, or each by itself.

    Two begin alike; prompts are read in pieces of other lengths; one guesses, one misses a step and one leaves early.
    """

    def step(*parts: Slice) -> None:
        sampled = engine.step(parts) if together else [engine.step([part])[0] for part in parts]
        for part, one in zip(parts, sampled, strict=True):
            if one is not None:
                told[part.sequence].token_ids.extend(one.token_ids)
                told[part.sequence].logprobs.extend(logprobs.sampled for logprobs in one.logprobs)

    def said(*sequences: int) -> list[Slice]:
        return [Slice(sequence, told[sequence].token_ids[-1:], num_logprobs=0) for sequence in sequences]

    prompts = [PROMPT[:4], PROMPT[4:26], PROMPT, [*PROMPT[::-1], *PROMPT]]
    sequences = [engine.open() for _ in prompts]
    halves = [(prompt[: len(prompt) // 2], prompt[len(prompt) // 2 :]) for prompt in prompts]
    step(*(Slice(sequence, first, sample=False) for sequence, (first, _) in zip(sequences, halves, strict=True)))
    half = len(PROMPT) // 2
    sequences.append(engine.fork(sequences[2], half))
    told = {sequence: Told([], []) for sequence in sequences}
    for sequence in sequences:
        engine.configure(sequence, GREEDY)
    if not engine.length(sequences[4]):  # a state has no beginning
        step(Slice(sequences[4], PROMPT[:half], sample=False))
    rests = [*(rest for _, rest in halves), PROMPT[9:19]]
    step(*(Slice(sequence, rest, num_logprobs=0) for sequence, rest in zip(sequences, rests, strict=True)))
    for _ in range(3):
        step(*said(*sequences))
    step(*said(*sequences[:2], *sequences[3:]))
    guessing = said(sequences[0])[0]
    if not engine.info.is_recurrent:
        guessing = replace(guessing, token_ids=[*guessing.token_ids, 7, 8, 9], num_guesses=3)
    step(guessing, *said(*sequences[1:]))
    engine.close(sequences[3])
    for _ in range(4):
        step(*said(*sequences[:3], sequences[4]))
    restored = engine.restore(engine.save(sequences[1]))
    engine.configure(restored, GREEDY)
    told[restored] = Told(told[sequences[1]].token_ids[-1:], [])
    engine.close(sequences[1])
    sequences[1] = restored
    step(*said(*sequences[:3], sequences[4]))
    return list(told.values())


@pytest.mark.parametrize("name", [*TINY_MODELS, *FOREIGN])
def test_a_batch_is_computed_as_each_alone(name: str) -> None:
    model = foreign(name) if name in FOREIGN else TINY_MODELS[name].build()
    with engine_of(model) as engine, engine_of(model) as other:
        for told, alone in zip(said_in_steps(engine, together=True), said_in_steps(other, together=False), strict=True):
            assert told.token_ids == alone.token_ids
            assert told.logprobs == pytest.approx(alone.logprobs, abs=1e-3)


def test_a_batch_is_one_forward(llama: PreTrainedModel) -> None:
    shapes = []

    def see(_module: object, _arguments: object, inputs: dict[str, torch.Tensor]) -> None:
        shapes.append(tuple(inputs["input_ids"].shape))

    hook = llama.model.register_forward_pre_hook(see, with_kwargs=True)
    with engine_of(llama) as engine:
        said_in_steps(engine, together=True)
    hook.remove()
    assert shapes[:3] == [(2, 40), (1, 11), (1, 2)], "a short prompt is not worth being padded that far"
    assert shapes[-1] == (4, 1)


def test_forks_and_cuts_leave_others_alone(engine: TorchEngine, llama: PreTrainedModel) -> None:
    sequence, token = start(engine, PROMPT)
    fork = engine.fork(sequence, 10)
    engine.configure(fork, GREEDY)
    (sampled,) = engine.step([Slice(fork, [7, 8, 9])])
    assert continued(engine, fork, sampled.token_ids[0], NUM_NEW) == greedy(llama, [*PROMPT[:10], 7, 8, 9])
    expected = greedy(llama, PROMPT)
    assert continued(engine, sequence, token, NUM_NEW) == expected
    assert engine.keepable(sequence, 20) == 20
    engine.truncate(sequence, 20)
    assert engine.length(sequence) == 20
    (sampled,) = engine.step([Slice(sequence, PROMPT[20:])])
    assert continued(engine, sequence, sampled.token_ids[0], NUM_NEW) == expected
    free = engine.num_free_tokens()
    engine.close(fork)
    assert engine.num_free_tokens() > free


@pytest.mark.parametrize("num_right", [0, 2, 4])
def test_guesses_change_nothing(engine: TorchEngine, llama: PreTrainedModel, num_right: int) -> None:
    expected = greedy(llama, PROMPT)
    guesses = [*expected[1 : 1 + num_right], *[(token + 1) % 256 for token in expected[1 + num_right : 5]]]
    sequence, token = start(engine, PROMPT)
    (sampled,) = engine.step([Slice(sequence, [token, *guesses], num_guesses=4, num_logprobs=2)])
    assert list(sampled.token_ids) == expected[1 : 2 + num_right]
    assert len(sampled.logprobs) == num_right + 1
    assert engine.length(sequence) == len(PROMPT) + 1 + num_right
    assert continued(engine, sequence, sampled.token_ids[-1], 9) == expected[1 + num_right : 10 + num_right]


def test_masks_and_logprobs(engine: TorchEngine, llama: PreTrainedModel) -> None:
    sequence = engine.open()
    engine.configure(sequence, GREEDY)
    allowed = bytearray(32)
    for token in (17, 33):
        allowed[token // 8] |= 1 << token % 8
    (sampled,) = engine.step([Slice(sequence, PROMPT, allowed=bytes(allowed), num_logprobs=3)])
    with torch.inference_mode():
        theirs = torch.log_softmax(llama(torch.tensor([PROMPT])).logits[0, -1].double(), -1)
    assert sampled.token_ids[0] == (17 if theirs[17] > theirs[33] else 33)
    (logprobs,) = sampled.logprobs
    assert logprobs.sampled == pytest.approx(float(theirs[sampled.token_ids[0]]), abs=1e-4)
    assert [token for token, _ in logprobs.best] == theirs.topk(3).indices.tolist()


def test_the_same_seed_draws_the_same(engine: TorchEngine) -> None:
    answers = []
    for _ in range(2):
        sequence = engine.open()
        engine.configure(sequence, Sampling(seed=5, temperature=1.5, presence_penalty=0.5), prompt_ids=PROMPT)
        (sampled,) = engine.step([Slice(sequence, PROMPT)])
        answers.append(continued(engine, sequence, sampled.token_ids[0], 12))
    assert answers[0] == answers[1]


def test_scores_and_embeddings(engine: TorchEngine, llama: PreTrainedModel) -> None:
    with torch.inference_mode():
        output = llama(torch.tensor([PROMPT]), output_hidden_states=True)
    np.testing.assert_allclose(np.asarray(engine.score(PROMPT)), output.logits[0].numpy(), atol=1e-3)
    states = output.hidden_states[-1][0]
    np.testing.assert_allclose(np.asarray(engine.embed(PROMPT)), states.mean(0).numpy(), atol=1e-4)
    np.testing.assert_allclose(np.asarray(engine.embed(PROMPT, pooling="last")), states[-1].numpy(), atol=1e-4)
    with pytest.raises(InvalidOption):
        engine.embed([])


def test_saved_sequences_go_on(engine: TorchEngine, llama: PreTrainedModel) -> None:
    sequence, token = start(engine, PROMPT)
    restored = engine.restore(engine.save(sequence))
    engine.configure(restored, GREEDY, prompt_ids=PROMPT)
    assert continued(engine, restored, token, NUM_NEW) == greedy(llama, PROMPT)
    with pytest.raises(UnusableFile, match="damaged"):
        engine.restore(b"nonsense")
    with engine_of(foreign("olmo")) as other, pytest.raises(UnusableFile, match="another model"):
        other.restore(engine.save(sequence))


def test_a_state_cannot_be_taken_back() -> None:
    model = TINY_MODELS["qwen3.5"].build()
    with engine_of(model) as engine:
        assert engine.info.is_recurrent
        sequence, token = start(engine, PROMPT, chunk=9)
        assert (engine.keepable(sequence, 10), engine.keepable(sequence, 99)) == (0, len(PROMPT))
        fork = engine.fork(sequence, len(PROMPT))
        engine.configure(fork, GREEDY)
        expected = greedy(model, PROMPT)
        assert continued(engine, sequence, token, NUM_NEW) == expected
        assert continued(engine, fork, token, NUM_NEW) == expected
        engine.truncate(sequence, 10)
        assert engine.length(sequence) == 0


def test_limits(llama: PreTrainedModel) -> None:
    with engine_of(llama, context_length=32) as engine:
        first, second = engine.open(), engine.open()
        with pytest.raises(ContextOverflow):
            engine.step([Slice(first, PROMPT[:33], sample=False)])
        for sequence in [first, second, engine.open(), engine.open()]:
            engine.step([Slice(sequence, PROMPT[:32], sample=False)])
        assert engine.num_free_tokens() == 0
        with pytest.raises(OutOfMemory):
            engine.step([Slice(engine.open(), [1], sample=False)])
        with pytest.raises(ValueError, match="one slice of a sequence"):
            engine.step([Slice(first, [1]), Slice(first, [1])])
    with pytest.raises(InvalidOption):
        TorchEngine(llama, name="cpu", context_length=1_000_000)


@pytest.fixture(scope="module")
def gpt2_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a family that the built-in engine does not know, which converses."""
    folder = tmp_path_factory.mktemp("gpt2")
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (folder / name).write_bytes((PIPELINE / name).read_bytes())
    config = GPT2Config(
        vocab_size=99, n_embd=48, n_layer=2, n_head=4, n_positions=256, bos_token_id=None, eos_token_id=2
    )
    model = GPT2LMHeadModel(config).eval()
    spread_weights(model, 3)
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_a_family_of_transformers_chats(engine: str, gpt2_folder: Path) -> None:
    with kw.LLM(gpt2_folder, engine=engine) as llm:
        assert (llm.card.family, llm.card.engine) == ("gpt2", "torch (cpu, float32)")
        reply = llm.chat("Who are you?", do_sample=False, max_new_tokens=12)
        again = llm.chat("Who are you?", do_sample=False, max_new_tokens=12)
    assert len(reply.text) == 12
    assert again.text == reply.text
    assert again.usage.cached_tokens > 0
    with kw.pipeline("text-generation", gpt2_folder, device_map="cpu", dtype="float32", engine="torch") as generate:
        answer = generate([{"role": "user", "content": "Who are you?"}], do_sample=False, max_new_tokens=12)
    assert answer[0]["generated_text"][-1]["content"] == reply.text


def test_in_a_pool_it_takes_the_room_of_its_weights(gpt2_folder: Path) -> None:
    flags = {"do_sample": False, "max_new_tokens": 8}
    size = (gpt2_folder / "model.safetensors").stat().st_size

    async def said(pool: ModelPool, question: str) -> str:
        async with pool.use("gpt2") as model:
            return (await model.achat(question, **flags)).text

    async def main() -> None:
        async with ModelPool() as pool:
            pool.add("gpt2", isolated(gpt2_folder))
            answers = await asyncio.gather(*(said(pool, question) for question in ("Hi", "Who?", "Hi")))
            assert answers[0] == answers[2]
            assert pool.status("gpt2").num_bytes == size
        async with ModelPool(memory_bytes=size - 1) as small:
            small.add("gpt2", isolated(gpt2_folder))
            with pytest.raises(OutOfMemory, match="there is room for"):
                await said(small, "Hi")

    asyncio.run(main())


def test_many_answers_are_what_each_is_alone(gpt2_folder: Path) -> None:
    chats = [[{"role": "user", "content": "word " * number + "?"}] for number in range(1, 9)]
    for flags in ({"do_sample": False}, {"temperature": 1.2, "top_k": 20, "repetition_penalty": 1.2, "seed": 3}):
        with kw.pipeline("text-generation", gpt2_folder, **flags, max_new_tokens=20) as generate:
            together = generate(chats)
            assert together == [generate(chat) for chat in chats]


def test_both_engines_say_the_same() -> None:
    with kw.LLM(PIPELINE) as native, kw.LLM(PIPELINE, engine="torch") as through_torch:
        flags = {"do_sample": False, "max_new_tokens": 24}
        assert native.card.engine.startswith("native")
        assert through_torch.chat("Hi", **flags).text == native.chat("Hi", **flags).text


def test_what_it_cannot_do(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="keeps nothing of what it has read"):
        TorchEngine(OpenAIGPTLMHeadModel(OpenAIGPTConfig(vocab_size=99, n_embd=8, n_layer=1, n_head=1)), name="cpu")
    with pytest.raises(UnsupportedFormat, match="this is GGUF"):
        load(tmp_path / "model.gguf")
    (tmp_path / "config.json").write_text('{"model_type": "martian"}')
    with pytest.raises(UnsupportedModel, match="martian"):
        load(tmp_path)
    if not torch.cuda.is_available():
        with pytest.raises(InvalidOption, match="no cuda device"):
            load(PIPELINE, device_map="cuda")
        with pytest.raises(InvalidOption, match="needs a CUDA device"):
            load(PIPELINE, quantization="int8")


def test_transformers_reads_what_it_reads(tmp_path: Path) -> None:
    loaded = load(PIPELINE, dtype="float32", device_map="cpu")
    reference = AutoModelForCausalLM.from_pretrained(PIPELINE, dtype=torch.float32)
    try:
        ids = [20, 30, 40]
        with torch.inference_mode():
            expected = reference(torch.tensor([ids])).logits[0].numpy()
        np.testing.assert_allclose(np.asarray(loaded.score(ids)), expected, atol=1e-4)
    finally:
        loaded.shutdown()
