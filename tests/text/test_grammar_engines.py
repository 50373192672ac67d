"""Grammars with engines: one that says what a script says, and the real default model."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from driving import loaded
from kaiwa.engines.engine import Engine, Slice
from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.sampling import Sampling
from kaiwa.text.constraints.grammar import Grammar
from kaiwa.text.constraints.grammars import Grammars
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tokens.tokenizer import Tokenizer
from kaiwa.weights.open import open_checkpoint
from marked_tokens import END, tokenizer

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "likes": {"type": "array", "items": {"enum": ["tea", "chess", "rain"]}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "age", "likes"],
    "additionalProperties": False,
}


def answer(engine: Engine, prompt: list[int], grammar: Grammar, sampling: Sampling) -> list[int]:
    """What an engine says under a grammar. Tokens that must come are computed and not drawn."""
    sequence = engine.open()
    engine.configure(sequence, sampling, prompt_ids=prompt)
    said: list[int] = []
    pending = prompt
    while not grammar.is_done:
        forced = grammar.forced()
        for token_id in forced:
            grammar.push(token_id)
        said += forced
        if grammar.is_done:
            break
        (sampled,) = engine.step([Slice(sequence, [*pending, *forced], allowed=grammar.allowed())])
        assert sampled is not None
        (token_id,) = sampled.token_ids
        grammar.push(token_id)
        said.append(token_id)
        pending = [token_id]
    engine.close(sequence)
    return said


def test_a_script_is_held_to_the_grammar() -> None:
    tokens = tokenizer()
    engine = ScriptedEngine(lambda ids: list(b"yes and no"), end_id=END, vocab_size=tokens.vocab_size)
    grammars = Grammars(tokens)
    said = answer(engine, list(b"Well?"), grammars.choice(["yes, of course", "no"]), Sampling())
    assert tokens.decode(said) == "yes, of course"
    assert all(part.num_guesses == 0 for step in engine.steps for part in step)


@pytest.fixture(scope="module")
def smollm2(model_path: Path) -> Iterator[tuple[Engine, Tokenizer]]:
    checkpoint = open_checkpoint(model_path)
    tokens = Tokenizer.from_gguf(checkpoint.metadata, path=model_path)
    checkpoint.close()
    with loaded(model_path, context_length=1024) as engine:
        yield engine, tokens


def test_the_default_model_answers_in_json_every_time(smollm2: tuple[Engine, Tokenizer]) -> None:
    engine, tokens = smollm2
    grammars = Grammars(tokens, vocab_size=engine.info.vocab_size)
    template = ChatTemplate.of(tokens)
    for seed, question in enumerate(["Describe Ada.", "Say nothing at all.", "会話", "{"]):
        prompt = tokens.encode_prompt(template.render([{"role": "user", "content": question}]))
        for sampling in (Sampling(do_sample=False), Sampling(temperature=1.5, seed=seed)):
            said = answer(engine, prompt, grammars.json_schema(PERSON), sampling)
            value = json.loads(tokens.decode(said, skip_special=True))
            assert list(value) == ["name", "age", "likes"]
            assert len(value["name"]) <= 20
            assert 0 <= value["age"] <= 150
            assert value["likes"]
            assert set(value["likes"]) <= {"tea", "chess", "rain"}


def test_what_must_come_is_what_the_tokenizer_would_say(smollm2: tuple[Engine, Tokenizer]) -> None:
    _, tokens = smollm2
    text = "The one and only answer, in several words."
    grammar = Grammars(tokens).choice([text])
    assert [*grammar.forced()] == tokens.encode(text)


def test_preparing_a_vocabulary_is_quick_and_done_once(smollm2: tuple[Engine, Tokenizer]) -> None:
    _, tokens = smollm2
    started = time.thread_time()
    grammars = Grammars(tokens)
    assert time.thread_time() - started < 0.01, "nothing is done before it is needed"
    grammars.json_object()
    assert time.thread_time() - started < 1.0
    started = time.thread_time()
    grammars.json_schema(PERSON)
    assert time.thread_time() - started < 0.1
