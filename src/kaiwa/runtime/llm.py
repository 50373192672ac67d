"""LLM: the object a person holds. A model in memory, which answers conversations."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self
from weakref import WeakKeyDictionary

from kaiwa.chat.embedding import Embedding
from kaiwa.chat.model import ModelCard
from kaiwa.chat.tool_schema import ToolLike, schemas
from kaiwa.closing import Closing
from kaiwa.engines.engine import Engine, Pooling
from kaiwa.errors import InvalidMessages, InvalidOption, TemplateError
from kaiwa.events import Progress, Reply
from kaiwa.messages import Conversation, normalize
from kaiwa.runtime import embedding
from kaiwa.runtime.answer_shape import AnswerShape
from kaiwa.runtime.answer_text import AnswerText
from kaiwa.runtime.batcher import Batcher, Batching
from kaiwa.runtime.guesses.draft import Drafter
from kaiwa.runtime.loading import elsewhere
from kaiwa.runtime.loading.loader import DEFAULT_MODEL, load
from kaiwa.runtime.loading.parts import EngineOptions, Parts
from kaiwa.runtime.loop import MAX_WAITING, Loop
from kaiwa.runtime.prefixes.prefix_store import PrefixStore
from kaiwa.runtime.request import Constraint, Prompt, Reader, Request
from kaiwa.runtime.stream import AsyncStream, NewRequest, Stream, collect
from kaiwa.sampling import MAX_SEED, Sampling
from kaiwa.text.answers.answer_format import AnswerFormat
from kaiwa.text.answers.stream_parser import StreamParser
from kaiwa.text.constraints.grammars import Grammars
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tokens.tokenizer import Tokenizer


class LLM(Closing):
    """A language model on this machine.

        llm = kw.LLM("smollm2:135m")
        print(llm.chat("Hey, can you explain gravity to me?", max_new_tokens=200).text)

    `model` is a name that `kaiwa` knows or one on the Hugging Face Hub, a `.gguf` file, or a folder with `config.json`
    and safetensors. The address of a server gives a `chat.remote.RemoteModel` instead, which has the same calls:
    `kw.LLM("https://host/v1", model="…", api_key="…")`.

    Any thread and any event loop may use it; up to `max_running` requests are answered at once, and up to `max_waiting`
    more wait for their turn. Memory is given back by `close`, or at the end of a `with` block.

    `speculation` guesses tokens that the context suggests and has several checked at once; no answer changes by it.
    `assistant_model` is a smaller model that guesses, too, while one answer is written: an LLM, or a name, which is
    then loaded and closed with this one. It may have other tokens. `cache_dir` is a folder that keeps what was read of
    conversations over a restart, up to 4 GiB of it.

    `quantization` rounds the weights of a checkpoint that is not quantized yet to 8 bits ("int8") or 4 ("int4") as it
    loads, and keeps the result for the next start. `kv_dtype` is what the context is held in: "float16", "float32", or
    "int8" in half the memory.

    The calls that answer a conversation take the options of `kaiwa.Sampling` by keyword, and besides:

    - `tools`: functions, or their schemas in the words of the OpenAI API; `tool_choice` ("auto", "none", "required" or
      a tool by name) and `parallel_tool_calls`. The arguments of a call always fit the schema.
    - `response_format`: `{"type": "json_object"}` or `{"type": "json_schema", "json_schema": {"schema": …}}`.
    - `template_variables`, which the chat template knows, such as `enable_thinking`.
    - `continue_final_message`: go on with the last message instead of answering it.
    - `assistant_model`: another LLM that guesses at this answer, in place of the one that was given at loading.
    - `num_logprobs`: tell the probability of each token, and those of so many more in its place.
    - `client`: who asks. Several are served in turn, and nobody uses what was computed for another.

    Raises `ModelNotFound`, `DownloadFailed`, `UnusableFile`, `UnsupportedModel`, `OutOfMemory` or `CacheFailed`;
    `InvalidOption` for an impossible `threads`, `context_length`, `quantization`, `kv_dtype` or `engine`.
    """

    def __new__(cls, model: object = None, /, **options: Any) -> Self:
        """A model that lives elsewhere, where the address of a server or a family of llama.cpp's asks for one."""
        other = elsewhere.find(model, options) if cls is LLM else None
        return super().__new__(cls) if other is None else other

    def __init__(
        self,
        model: str | os.PathLike[str] = DEFAULT_MODEL,
        *,
        threads: int | None = None,
        context_length: int | None = None,
        quantization: str | None = None,
        kv_dtype: str | None = None,
        engine: str | Engine = "auto",
        on_progress: Callable[[Progress], None] | None = None,
        speculation: bool = True,
        assistant_model: LLM | str | os.PathLike[str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        max_running: int | None = None,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        options = EngineOptions(threads, context_length, quantization, kv_dtype)
        parts = load(model, options, engine=engine, on_progress=on_progress)
        store = None if cache_dir is None else PrefixStore(Path(cache_dir), parts.engine.info)
        self._hold(parts, Batching(max_running, speculation, store), max_waiting)
        self._be_assisted(assistant_model, threads=threads)

    @classmethod
    def from_parts(
        cls,
        engine: Engine,
        tokenizer: Tokenizer,
        template: ChatTemplate | None,
        *,
        name: str = "model",
        sampling: Sampling | None = None,
        speculation: bool = True,
        assistant_model: LLM | str | os.PathLike[str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        max_running: int | None = None,
        max_waiting: int = MAX_WAITING,
    ) -> Self:
        """A model made of parts that are loaded already; the engine is shut down with it."""
        llm = cls.__new__(cls)
        parts = Parts(name, engine, tokenizer, template, sampling or Sampling())
        store = None if cache_dir is None else PrefixStore(Path(cache_dir), engine.info)
        llm._hold(parts, Batching(max_running, speculation, store), max_waiting)
        llm._be_assisted(assistant_model)
        return llm

    def _hold(self, parts: Parts, batching: Batching, max_waiting: int) -> None:
        self._parts = parts
        self._answer_format = AnswerFormat.of(parts.template) if parts.template else AnswerFormat()
        self._grammars = Grammars(parts.tokenizer, vocab_size=parts.engine.info.vocab_size)
        self._loop = Loop(Batcher(parts.engine, batching), max_waiting=max_waiting)

    def _be_assisted(self, model: LLM | str | os.PathLike[str] | None, *, threads: int | None = None) -> None:
        """Have a smaller model guess at all answers; one that is loaded for that is closed with this one."""
        self._loaded_assistant: LLM | None = None
        self._drafters: WeakKeyDictionary[LLM, Drafter] = WeakKeyDictionary()
        if isinstance(model, (str, os.PathLike)):
            model = self._loaded_assistant = LLM(model, threads=threads)
        self._assistant = model
        self._drafter(model)

    @property
    def card(self) -> ModelCard:
        """What this model is, and what it costs."""
        info = self._parts.engine.info
        return ModelCard(
            name=self._parts.name,
            family=info.family,
            number_format=info.number_format,
            engine=info.name,
            num_parameters=info.num_parameters,
            context_length=info.context_length,
            weights_bytes=info.weights_bytes,
            cache_bytes=info.cache_bytes_per_token * info.context_length,
        )

    @property
    def sampling(self) -> Sampling:
        """The options that hold where a call gives none: those of the model's own generation config."""
        return self._parts.sampling

    @property
    def chat_template(self) -> str | None:
        """The source of the model's chat template, or None where it has none."""
        return None if self._parts.template is None else self._parts.template.source

    def chat(self, messages: Conversation, **options: Any) -> Reply:
        """The whole answer to a conversation. Takes and raises what `stream` does."""
        return collect(self.stream(messages, **options))

    def stream(self, messages: Conversation, **options: Any) -> Stream:
        """The events of the answer, as they come; the last is `Finished`. Closing the stream stops the work.

        Raises `InvalidOption`, `InvalidMessages`, `TemplateError`, `ContextOverflow` or `Busy` at once.
        """
        return Stream(self._loop, self._ask(messages, **options))

    def stream_text(
        self,
        prompt: str | Sequence[int],
        *,
        end_ids: Collection[int] | None = None,
        num_logprobs: int | None = None,
        client: str = "",
        assistant_model: LLM | None = None,
        **options: Any,
    ) -> Stream:
        """The events of what follows after a text or its token ids, without a chat template.

        `end_ids` are tokens that end it, by default the model's own.

        Raises `InvalidOption`, `InvalidMessages`, `ContextOverflow` or `Busy` at once.
        """
        asked = self._asked(
            options, client=client, num_logprobs=num_logprobs, assistant_model=assistant_model, end_ids=end_ids
        )
        return Stream(self._loop, lambda reader: asked(reader, self._text_ids(prompt)))

    async def achat(self, messages: Conversation, **options: Any) -> Reply:
        """As `chat`, without ever blocking the event loop. Cancelling the task stops the work within a step."""
        return collect([event async for event in self.astream(messages, **options)])

    def astream(self, messages: Conversation, **options: Any) -> AsyncStream:
        """As `stream`, without ever blocking the event loop. Closing it, or cancelling its task, stops the work.

        Raises `InvalidOption` at once, and what else `stream` raises before the first event.
        """
        return AsyncStream(self._loop, self._ask(messages, **options))

    def astream_text(
        self,
        prompt: str | Sequence[int],
        *,
        end_ids: Collection[int] | None = None,
        num_logprobs: int | None = None,
        client: str = "",
        assistant_model: LLM | None = None,
        **options: Any,
    ) -> AsyncStream:
        """As `stream_text`, without ever blocking the event loop."""
        asked = self._asked(
            options, client=client, num_logprobs=num_logprobs, assistant_model=assistant_model, end_ids=end_ids
        )
        return AsyncStream(self._loop, lambda reader: asked(reader, self._text_ids(prompt)))

    def embed(self, texts: Sequence[str | Sequence[int]], *, pooling: Pooling | None = None) -> list[Embedding]:
        """A vector of length 1 for each text, or for its token ids: the model's last hidden states made into one.

        `pooling` "mean" is over all tokens, "last" takes that of the last one; None is what the model's files say, and
        "mean" where they say nothing. Answers go on between two texts.

        Raises `InvalidMessages` for an empty text, `ContextOverflow` for one that is longer than the context,
        `UnsupportedModel` for a model that makes its vectors in another way.
        """
        return [future.result() for future in self._embed(texts, pooling)]

    async def aembed(self, texts: Sequence[str | Sequence[int]], *, pooling: Pooling | None = None) -> list[Embedding]:
        """As `embed`, without ever blocking the event loop."""
        import asyncio  # as in `runtime.stream`

        futures = await asyncio.to_thread(self._embed, texts, pooling)
        return [await asyncio.wrap_future(future) for future in futures]

    def count_tokens(
        self,
        messages: Conversation,
        *,
        tools: Sequence[ToolLike] | None = None,
        template_variables: Mapping[str, Any] | None = None,
    ) -> int:
        """How many tokens the conversation takes as a prompt."""
        shown = schemas(tools) if tools else None
        prompt = self._template.render(normalize(messages), tools=shown, variables=template_variables)
        return len(self._parts.tokenizer.encode_prompt(prompt))

    def tokenize(self, text: str) -> list[int]:
        """The token ids of ordinary text; nothing in it is read as a special token."""
        return self._parts.tokenizer.encode(text)

    def detokenize(self, token_ids: Sequence[int]) -> str:
        """The text of token ids, special tokens included."""
        return self._parts.tokenizer.decode(token_ids)

    def drafter_for(self, tokenizer: Tokenizer) -> Drafter:
        """What lets a larger model with this tokenizer have this one write ahead. Its answers go on meanwhile."""
        return Drafter(self._loop, self._parts.tokenizer, tokenizer)

    def close(self) -> None:
        """Give the model's memory back. What is being answered ends with an error."""
        self._loop.close()
        if self._loaded_assistant is not None:
            self._loaded_assistant.close()

    def __repr__(self) -> str:
        return f"<LLM {self._parts.name}: {self._parts.engine.info.name}>"

    def _embed(self, texts: Sequence[str | Sequence[int]], pooling: Pooling | None) -> list[Future[Embedding]]:
        if isinstance(texts, str):
            raise InvalidMessages(
                "one text was given where a list of texts is expected", hint=f"write [{texts[:20]!r}]"
            )
        pooling = pooling or embedding.check_pooling(self._parts.pooling, self._parts.name)
        end = [] if (closing_id := self._parts.tokenizer.closing_id) is None else [closing_id]
        read = [self._text_ids(text) + (end if text and isinstance(text, str) else []) for text in texts]
        for token_ids in read:
            embedding.check(token_ids, self._parts.engine.info)
        return [
            self._loop.submit_call(
                partial(embedding.embed, token_ids=token_ids, pooling=pooling), num_tokens=len(token_ids)
            )
            for token_ids in read
        ]

    def _text_ids(self, text: str | Sequence[int]) -> list[int]:
        """The token ids of a text as a prompt, with the token that begins one where the model has it."""
        if not isinstance(text, str):
            return list(text)
        tokenizer = self._parts.tokenizer
        begin = [tokenizer.bos_id] if tokenizer.adds_bos and tokenizer.bos_id is not None else []
        return [*begin, *tokenizer.encode(text)]

    def _drafter(self, assistant: LLM | None) -> Drafter | None:
        """That of an assistant, whose tokens are compared with this model's once."""
        if assistant is None:
            return None
        if not isinstance(assistant, LLM):
            raise InvalidOption(
                f"assistant_model={assistant!r} is none that is loaded", hint="pass kaiwa.LLM(…) with a smaller model"
            )
        if assistant not in self._drafters:
            self._drafters[assistant] = assistant.drafter_for(self._parts.tokenizer)
        return self._drafters[assistant]

    def _with_seed(self, options: Mapping[str, Any]) -> Sampling:
        sampling = self.sampling.updated(options)
        if sampling.seed is not None:
            return sampling
        return replace(sampling, seed=int.from_bytes(os.urandom(8), "big") & MAX_SEED)

    @property
    def _template(self) -> ChatTemplate:
        template = self._parts.template
        if template is None:
            raise TemplateError(
                f"{self._parts.name} has no chat template: it continues text, and was not made to converse",
                hint="choose a model whose name says Instruct, Chat or it",
            )
        return template

    def _ask(
        self,
        messages: Conversation,
        *,
        tools: Sequence[ToolLike] | None = None,
        tool_choice: str | Mapping[str, Any] = "auto",
        parallel_tool_calls: bool = True,
        response_format: Mapping[str, Any] | None = None,
        template_variables: Mapping[str, Any] | None = None,
        continue_final_message: bool | None = None,
        num_logprobs: int | None = None,
        client: str = "",
        assistant_model: LLM | None = None,
        **options: Any,
    ) -> NewRequest:
        """What makes a request of a conversation. Options are checked now, the rest when it is made."""
        asked = self._asked(options, client=client, num_logprobs=num_logprobs, assistant_model=assistant_model)
        shape = AnswerShape.read(tools, tool_choice, parallel_tool_calls, response_format)

        def new_request(reader: Reader) -> Request:
            template, tokenizer, turns = self._template, self._parts.tokenizer, normalize(messages)
            shape.check(self._answer_format, template)
            prompt = template.render(
                turns,
                tools=shape.shown_tools,
                variables=template_variables,
                continue_final_message=bool(continue_final_message),
            )
            continued = turns[-1].content if continue_final_message else ""
            answer = self._answer_format.after(prompt.text, continued=continued)
            return asked(
                reader,
                tokenizer.encode_prompt(prompt),
                parser=shape.parser(answer),
                shown=answer.shown(tokenizer.special_tokens),
                constraint=shape.grammar(answer, self._grammars),
            )

        return new_request

    def _asked(
        self,
        options: Mapping[str, Any],
        *,
        client: str,
        num_logprobs: int | None,
        assistant_model: LLM | None,
        end_ids: Collection[int] | None = None,
    ) -> Callable[..., Request]:
        """What makes a request of a reader and a prompt's tokens, which begins to count the time now."""
        asked_at = time.perf_counter()
        sampling = self._with_seed(options)
        _check_num_logprobs(num_logprobs)
        tokenizer, info = self._parts.tokenizer, self._parts.engine.info
        ends = tokenizer.end_ids if end_ids is None else end_ids
        drafter = self._drafter(assistant_model or self._assistant)

        def new_request(
            reader: Reader,
            token_ids: list[int],
            *,
            parser: StreamParser | None = None,
            shown: Collection[str] = (),
            constraint: Constraint | None = None,
        ) -> Request:
            prompt = Prompt(token_ids, sampling, asked_at, client, num_logprobs, drafter)
            prompt.check(info)
            text = AnswerText(tokenizer, end_ids=ends, stop=sampling.stop, parser=parser, shown=shown)
            return Request(prompt, text, reader, context_length=info.context_length, constraint=constraint)

        return new_request


def _check_num_logprobs(number: int | None) -> None:
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 20):
        raise InvalidOption(
            f"num_logprobs={number!r} is impossible", hint="num_logprobs must be a whole number from 0 to 20, or None"
        )
