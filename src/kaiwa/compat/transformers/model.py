"""AutoModelForCausalLM: a model that continues token ids, under transformers' names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from kaiwa.chat.model import ModelCard
from kaiwa.closing import Closing
from kaiwa.compat.transformers import flags, placement
from kaiwa.compat.transformers.generation_config import GenerationConfig
from kaiwa.compat.transformers.streamers import BaseStreamer, TextStreamer
from kaiwa.compat.transformers.token_rows import TokenRows, padded, rows_of
from kaiwa.errors import InvalidOption
from kaiwa.extras import require
from kaiwa.runtime.llm import LLM
from kaiwa.runtime.stream import Stream


class AutoModelForCausalLM:
    """Loads a model by its name or path."""

    @staticmethod
    def from_pretrained(model: str | Path, **options: Any) -> CausalLM:
        """The model, on the built-in engine where it can be, else on another.

        `options` are `dtype` (or `torch_dtype`), `device_map`, `quantization_config`, `revision`, `token`,
        `assistant_model`, and Kaiwa's own `engine`, `threads`, `context_length` and `quantization`.

        Raises what `kw.LLM` raises, and `InvalidOption` for an option that is unknown or would be ignored.
        """
        return CausalLM(load(placement.read(model, options)))


def load(placed: placement.Placement) -> LLM:
    """The model in memory."""
    from kaiwa.runtime.loading import engine_choice
    from kaiwa.weights import hub

    path = hub.resolve(placed.model)
    name = hub.display_name(placed.model, path)
    if engine_choice.wants_torch(path, placed.engine, placed.quantization):
        return _on_torch(path, placed, name)
    quantization = placed.quantization
    if quantization is not None:
        from kaiwa.weights.description import describe

        quantization = placement.drop_needless_quantization(
            quantization, number_format=describe(path).number_format, name=name
        )
    return LLM(
        placed.model,
        engine=placed.engine,
        quantization=quantization,
        context_length=placed.context_length,
        threads=placed.threads,
        assistant_model=_as_assistant(placed.assistant_model),
    )


def loaded_assistant(model: Any) -> LLM:
    """A smaller model that guesses at one answer. Raises `InvalidOption` for what is none that is loaded."""
    found = _as_assistant(model)
    if not isinstance(found, LLM):
        raise InvalidOption(
            f"assistant_model={model!r} is none that is loaded",
            hint="load it with kw.AutoModelForCausalLM.from_pretrained, or give its name where the model is loaded",
        )
    return found


def _as_assistant(model: Any) -> Any:
    return model.llm if isinstance(model, CausalLM) else model


def _on_torch(path: Path, placed: placement.Placement, name: str) -> LLM:
    from kaiwa.runtime.loading import torch_loading
    from kaiwa.runtime.loading.parts import EngineOptions
    from kaiwa.weights import hub

    config = placed.quantization_config
    parts = torch_loading.load(
        path,
        EngineOptions(
            threads=placed.threads,
            context_length=placed.context_length,
            quantization=placed.quantization or (config.quantization if config else None),
        ),
        name=name,
        recommended=hub.recommended(placed.model),
        on_progress=None,
        dtype=placed.dtype,
        device_map=placed.device_map,
        quantization_config=config,
        max_memory=placed.max_memory,
    )
    return LLM.from_parts(
        parts.engine,
        parts.tokenizer,
        parts.template,
        name=parts.name,
        sampling=parts.sampling,
        assistant_model=_as_assistant(placed.assistant_model),
    )


class CausalLM(Closing):
    """A model under transformers' names. Any thread may use it; `llm` is the `kw.LLM` that it is made of."""

    device = "cpu"
    """Where inputs are to be moved: nowhere, as they are lists."""

    def __init__(self, llm: LLM) -> None:
        self.llm = llm
        self.generation_config = GenerationConfig()

    @property
    def card(self) -> ModelCard:
        """What the model is, and what it costs."""
        return self.llm.card

    def get_memory_footprint(self) -> int:
        """Bytes of the weights in memory."""
        return self.llm.card.weights_bytes

    def num_parameters(self) -> int:
        """How many numbers the model is made of."""
        return self.llm.card.num_parameters

    def eval(self) -> Self:
        """Itself: a model here is never trained."""
        return self

    def to(self, device: Any = "cpu") -> Self:
        """Itself. A model is put on a device as it is loaded, with `device_map`."""
        if str(device) not in ("cpu", str(self.device)):
            raise InvalidOption(
                f"a loaded model cannot be moved to {device!r}", hint="load it with device_map= and engine='torch'"
            )
        return self

    def generate(
        self,
        inputs: Any = None,
        *,
        input_ids: Any = None,
        attention_mask: Any = None,
        streamer: BaseStreamer | None = None,
        generation_config: GenerationConfig | Mapping[str, Any] | None = None,
        tokenizer: Any = None,
        assistant_model: Any = None,
        assistant_tokenizer: Any = None,
        **given: Any,
    ) -> Any:
        """The rows of `input_ids`, each with its answer behind it, filled up with `pad_token_id` to one length.

        `attention_mask` marks padding, which is left out. `given` are generation flags; `stop_strings` need no
        `tokenizer`, and end the row before the text of them is whole. `assistant_model` is a smaller one that guesses;
        it may have other tokens, and no answer changes by it. What comes in as a tensor of torch comes out as one.

        Raises `InvalidOption` for a flag that is unknown or would have no effect, `ContextOverflow` for a row that does
        not fit, `InvalidMessages` for ids that the model does not have.
        """
        rows, is_tensor = self._rows(inputs, input_ids, attention_mask)
        wanted = flags.read({**self.generation_config.to_dict(), **_as_flags(generation_config), **given})
        if streamer is not None and len(rows) * wanted.num_return_sequences > 1:
            raise InvalidOption("a streamer takes one answer at a time", hint="call generate() for each row")
        assistant = None if assistant_model is None else loaded_assistant(assistant_model)
        streams = [
            self._start(row, wanted, index, assistant)
            for row in rows
            for index in range(wanted.num_return_sequences)
        ]  # fmt: skip
        try:
            prompts = [row for row in rows for _ in range(wanted.num_return_sequences)]
            answers = [row + _read(stream, row, streamer) for row, stream in zip(prompts, streams, strict=True)]
        except BaseException as error:
            for stream in streams:
                stream.close()
            if streamer is not None:
                streamer.fail(error)
            raise
        filled = padded(answers, self._pad_id(wanted))
        return _tensor(filled) if is_tensor else filled

    def close(self) -> None:
        """Give the model's memory back."""
        self.llm.close()

    def __repr__(self) -> str:
        return f"<CausalLM {self.llm.card.name}: {self.llm.card.engine}>"

    def _rows(self, inputs: Any, input_ids: Any, attention_mask: Any) -> tuple[TokenRows, bool]:
        """The rows without padding, and whether they came as a tensor of torch."""
        if isinstance(inputs, Mapping):
            input_ids, attention_mask = inputs["input_ids"], inputs.get("attention_mask", attention_mask)
        elif inputs is not None and input_ids is not None:
            raise InvalidOption("inputs and input_ids are two names of one thing", hint="leave one of the two out")
        value = inputs if input_ids is None else input_ids
        if value is None:
            raise InvalidOption("there are no input_ids to go on from", hint="generate(input_ids, …)")
        rows = rows_of(value)
        if attention_mask is not None:
            mask = rows_of(attention_mask, name="attention_mask")
            if [len(row) for row in mask] != [len(row) for row in rows]:
                raise InvalidOption("attention_mask has another shape than input_ids", hint="pass both as they came")
            rows = TokenRows(
                [token for token, is_there in zip(row, marks, strict=True) if is_there]
                for row, marks in zip(rows, mask, strict=True)
            )
        return rows, type(value).__module__.partition(".")[0] == "torch"

    def _start(self, row: Sequence[int], wanted: flags.Flags, index: int, assistant: LLM | None) -> Stream:
        options = flags.completed(wanted.options, self.llm.sampling)
        if wanted.max_length is not None:
            options["max_new_tokens"] = flags.room(wanted.max_length, len(row))
        if options.get("seed") is not None:
            options["seed"] += index
        return self.llm.stream_text(row, end_ids=wanted.eos_token_id, assistant_model=assistant, **options)

    def _pad_id(self, wanted: flags.Flags) -> int:
        if wanted.pad_token_id is not None:
            return wanted.pad_token_id
        return (wanted.eos_token_id or (0,))[0]


def _read(stream: Stream, row: list[int], streamer: BaseStreamer | None) -> list[int]:
    """The token ids of an answer, told to the streamer as they come."""
    told = 0
    if streamer is not None and not (isinstance(streamer, TextStreamer) and streamer.skip_prompt):
        streamer.put(row)
    for event in stream:
        if isinstance(streamer, TextStreamer):
            streamer.write(event.text)
        elif streamer is not None and len(new := list(stream.token_ids)[told:]):
            told += len(new)
            streamer.put(new)
    if streamer is not None:
        streamer.end()
    return list(stream.token_ids)


def _as_flags(config: GenerationConfig | Mapping[str, Any] | None) -> Mapping[str, Any]:
    if config is None:
        return {}
    content = config if isinstance(config, Mapping) else config.to_dict()
    return {name: value for name, value in content.items() if value is not None and name != "transformers_version"}


def _tensor(rows: TokenRows) -> Any:
    return require("torch", feature="a tensor of token ids", extra="torch").tensor(rows)
