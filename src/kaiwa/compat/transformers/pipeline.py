"""pipeline("text-generation"): a model that continues texts and chats, under transformers' name and in its shapes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kaiwa.chat.address import is_address
from kaiwa.chat.remote import RemoteModel
from kaiwa.closing import Closing
from kaiwa.compat.transformers import model as models
from kaiwa.compat.transformers import placement
from kaiwa.compat.transformers.call import Call, read_call
from kaiwa.compat.transformers.model import CausalLM
from kaiwa.compat.transformers.streamers import TextStreamer
from kaiwa.compat.transformers.tokenizer import CompatTokenizer, check_template
from kaiwa.errors import BatchFailed, InvalidMessages, InvalidOption, KaiwaError, did_you_mean
from kaiwa.events import Reply
from kaiwa.messages import normalize
from kaiwa.runtime.llm import LLM
from kaiwa.runtime.stream import collect

TASKS = ("text-generation",)
MAX_TOGETHER = 32
"""How many prompts are in the works at once where nobody says: more would only wait."""

Model = LLM | RemoteModel
Prompt = str | Sequence[Mapping[str, Any]]


def pipeline(
    task: str | None = None,
    model: str | Path | LLM | RemoteModel | CausalLM | None = None,
    *,
    tokenizer: Any = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> TextGenerationPipeline:
    """A model to be called with texts or chats.

        generate = kw.pipeline("text-generation", model="smollm2:135m")
        print(generate([{"role": "user", "content": "Hi!"}])[0]["generated_text"][-1]["content"])

    `model` is what `kw.LLM` takes, the address of a server (then its name there is in `model_kwargs["model"]`), or a
    model that is loaded already. `options` and `model_kwargs` are those of `AutoModelForCausalLM.from_pretrained`; what
    is not known by these names are generation flags that hold for every call. `tokenizer` may name the model again, as
    code for transformers often does; a model always has its own. `assistant_model` is a smaller model that guesses at
    answers: a name, which is loaded and closed with this one, or one that is loaded.

    Raises `InvalidOption` for another task or an unknown name, and what `kw.LLM` raises.
    """
    if task not in (None, *TASKS):
        raise InvalidOption(f"there is no pipeline for {task!r}", hint=did_you_mean(str(task), TASKS))
    if task is None and model is None:
        raise InvalidOption("a pipeline needs a task or a model", hint='pipeline("text-generation", model=…)')
    _check_tokenizer(tokenizer, model)
    loading = {name: value for name, value in options.items() if name in placement.NAMES}
    defaults = {name: value for name, value in options.items() if name not in placement.NAMES}
    given = {**loading, **(model_kwargs or {})}
    if isinstance(model, (LLM, RemoteModel, CausalLM)):
        if "assistant_model" in given:
            defaults["assistant_model"] = given.pop("assistant_model")
        if given:
            raise InvalidOption(f"a loaded model cannot be given {next(iter(given))}", hint="pass its name instead")
        return TextGenerationPipeline(model.llm if isinstance(model, CausalLM) else model, **defaults)
    if is_address(model):
        return TextGenerationPipeline(RemoteModel(str(model), **given), **defaults)
    from kaiwa.weights.hub import DEFAULT_MODEL

    return TextGenerationPipeline(models.load(placement.read(model or DEFAULT_MODEL, given)), **defaults)


class TextGenerationPipeline(Closing):
    """Continues texts and chats. `defaults` are generation flags that hold where a call gives none.

    Several at once are answered together. The memory is given back by `close`, or at the end of a `with` block.
    """

    task = "text-generation"

    def __init__(self, model: Model, **defaults: Any) -> None:
        self.model = model
        self._defaults = defaults
        read_call(defaults)

    def __call__(self, inputs: Any = None, /, *, text_inputs: Any = None, **flags: Any) -> list[Any]:
        """The answers: for a text or a chat, a list of dictionaries; for several of them, a list of such lists.

        A chat is a list of messages. `generated_text` is the text or the chat with the answer behind it: a list of its
        own, to append the next message to. With `return_full_text=False` it is the answer alone; a chat whose last
        message is the assistant's is continued there, unless `continue_final_message=False`.

        Raises `InvalidOption` for a flag that is unknown or would have no effect, `InvalidMessages` for what is neither
        text nor chat, `ContextOverflow`, and `BatchFailed` with the other answers where some of several cannot be
        given.
        """
        inputs = text_inputs if inputs is None else inputs
        call = read_call({**self._defaults, **flags})
        prompts, is_batch = _prompts(inputs)
        if call.streamer is not None and (is_batch or call.flags.num_return_sequences > 1):
            raise InvalidOption("a streamer takes one answer at a time", hint="call the pipeline for each prompt")
        answers = self._answer_all(prompts, call) if is_batch else [self._answer(prompts[0], call)]
        return answers if is_batch else answers[0]

    def close(self) -> None:
        """Give the model's memory back."""
        self.model.close()

    def __repr__(self) -> str:
        return f"<pipeline {self.task}: {self.model!r}>"

    def _answer(self, prompt: Prompt, call: Call) -> list[dict[str, Any]]:
        try:
            return [_record(prompt, reply, call) for reply in self._replies(self._start(prompt, call), call)]
        except BaseException as error:
            if call.streamer is not None:
                call.streamer.fail(error)
            raise

    def _answer_all(self, prompts: Sequence[Prompt], call: Call) -> list[Any]:
        """All answers, so many at once. One that fails leaves the others as they are."""
        answers: list[Any] = []
        problems: dict[int, KaiwaError] = {}
        begun: deque[tuple[Prompt, list[Any] | KaiwaError]] = deque()

        def finish_first() -> None:
            prompt, streams = begun.popleft()
            try:
                if isinstance(streams, KaiwaError):
                    raise streams
                answers.append([_record(prompt, reply, call) for reply in self._replies(streams, call)])
            except KaiwaError as error:
                problems[len(answers)] = error
                answers.append(None)

        for prompt in prompts:
            if len(begun) == (call.batch_size or MAX_TOGETHER):
                finish_first()
            begun.append((prompt, self._begin(prompt, call)))
        while begun:
            finish_first()
        if problems:
            raise BatchFailed(answers, problems)
        return answers

    def _begin(self, prompt: Prompt, call: Call) -> list[Any] | KaiwaError:
        """The streams of a prompt, or why there are none."""
        try:
            return self._start(prompt, call)
        except KaiwaError as error:
            return error

    def _start(self, prompt: Prompt, call: Call) -> list[Any]:
        """The streams of all sequences that are to be returned for a prompt."""
        options = call.options_for(self.model, prompt)
        streams = []
        for index in range(call.flags.num_return_sequences):
            if options.get("seed") is not None:
                options = {**options, "seed": options["seed"] + (1 if index else 0)}
            streams.append(self._stream(prompt, call, options))
        return streams

    def _stream(self, prompt: Prompt, call: Call, options: Mapping[str, Any]) -> Any:
        if isinstance(prompt, str):
            call.check_text()
            return self.model.stream_text(call.prefix + prompt, **options)
        if isinstance(self.model, LLM) and (source := self.model.chat_template) is not None:
            check_template(source, tools=call.tools, documents=call.documents)
        return self.model.stream(
            prompt,
            tools=call.tools,
            template_variables=call.variables,
            continue_final_message=call.continues(prompt),
            **options,
        )

    def _replies(self, streams: list[Any], call: Call) -> list[Reply]:
        try:
            return [collect(_told(stream, call.streamer)) for stream in streams]
        except BaseException:
            for stream in streams:
                stream.close()
            raise


def _told(stream: Iterable[Any], streamer: TextStreamer | None) -> Iterable[Any]:
    """The events of a stream, whose text the streamer gets as well."""
    for event in stream:
        if streamer is not None:
            streamer.write(event.text)
        yield event
    if streamer is not None:
        streamer.end()


def _prompts(inputs: Any) -> tuple[list[Prompt], bool]:
    """The prompts, and whether there are several: texts and chats may be mixed."""
    if isinstance(inputs, str):
        return [inputs], False
    if not isinstance(inputs, Iterable) or isinstance(inputs, Mapping):
        raise InvalidMessages(
            f"a text or a chat is expected, not {type(inputs).__name__}",
            hint='pass "text", or [{"role": "user", "content": "…"}]',
        )
    items = list(inputs)
    if not items:
        raise InvalidMessages("there is nothing to answer: the list is empty", hint="pass at least one message")
    if all(isinstance(item, Mapping) for item in items):
        return [items], False
    prompts: list[Prompt] = [item if isinstance(item, str) else _chat(index, item) for index, item in enumerate(items)]
    return prompts, True


def _chat(index: int, item: Any) -> list[Mapping[str, Any]]:
    if not isinstance(item, (list, tuple)):
        raise InvalidMessages(f"prompt {index} is a {type(item).__name__}, and neither a text nor a chat")
    return list(item)


def _record(prompt: Prompt, reply: Reply, call: Call) -> dict[str, Any]:
    """An answer in transformers' shape."""
    if not call.is_full:
        return {"generated_text": reply.text}
    if isinstance(prompt, str):
        return {"generated_text": prompt + reply.text}
    chat = [dict(message) for message in prompt]
    if call.continues(prompt):
        *before, last = chat
        text = normalize([last])[0].content + reply.text
        return {"generated_text": [*before, {**last, "content": text}]}
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [
            {"type": "function", "function": {"name": tool.name, "arguments": tool.arguments}}
            for tool in reply.tool_calls
        ]
    return {"generated_text": [*chat, message]}


def _check_tokenizer(tokenizer: Any, model: Any) -> None:
    if tokenizer is None or isinstance(tokenizer, CompatTokenizer) or str(tokenizer) == str(model):
        return
    raise InvalidOption("a model here has its own tokenizer, and takes no other", hint="leave tokenizer= out")
