"""RemoteModel: a model on another server that speaks OpenAI's API, used as one that is here."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from kaiwa.chat import remote_vectors
from kaiwa.chat.background_loop import BackgroundLoop
from kaiwa.chat.embedding import Embedding
from kaiwa.chat.model import ModelCard
from kaiwa.chat.remote_answer import Answer
from kaiwa.chat.remote_connection import Connection
from kaiwa.chat.remote_request import Wishes, chat_body, text_body
from kaiwa.chat.remote_stream import Item, RemoteStream, Work, across
from kaiwa.chat.remote_vectors import Texts
from kaiwa.chat.reply import collect
from kaiwa.chat.tool_schema import ToolLike
from kaiwa.closing import Closing
from kaiwa.errors import InvalidOption, ModelNotFound, did_you_mean
from kaiwa.events import Event, Finished, Reply
from kaiwa.messages import Conversation, normalize
from kaiwa.sampling import Sampling

API_KEY = "KAIWA_API_KEY"
_CHAT, _TEXT, _EMBEDDINGS, _MODELS = "/chat/completions", "/completions", "/embeddings", "/models"
_LLAMA_CPP = "llamacpp"
_MAX_KNOWN_COUNTS = 64


class RemoteModel(Closing):
    """A model behind an address: vLLM, SGLang, Ollama, llama-server, `kaiwa serve`, a hosted API.

        model = RemoteModel("http://127.0.0.1:8000/v1", model="qwen3:4b")
        print(model.chat("Hey, can you explain gravity to me?").text)

    `url` is the address up to and with `/v1`. `model` may be left out where the server has one only. `api_key` is by
    default that of the variable KAIWA_API_KEY. `options` are options of sampling that hold where a call gives none;
    what nobody chose is the server's to decide.

    A request that fails before anything of the answer came is tried again, `max_retries` times, after the time that
    the server asks for or longer and longer ones. `timeout_s` is how long the next bytes may take. Any thread and any
    event loop may use it. `close`, or the end of a `with` block, closes the connections.

    Raises `RemoteFailed` where the server cannot be reached or refuses the key, `ModelNotFound` where it has no such
    model, `InvalidOption` for an address that is none.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str = "",
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        max_retries: int = 3,
        timeout_s: float = 600.0,
        **options: Any,
    ) -> None:
        self._sampling = Sampling().updated(options)
        self._options = options
        self._url = _base(url)
        key = os.environ.get(API_KEY) if api_key is None else api_key
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._headers |= headers or {}
        self._max_retries = max_retries
        self._timeout_s = timeout_s
        self._loop = BackgroundLoop("kaiwa-remote")
        self._connection: Connection | None = None
        self._counts: dict[str, int] = {}
        self._name = model
        self._may_know_more = False
        try:
            self._about = self._loop.submit(self._look_up()).result()
            self._is_brief = not self.card.context_length
        except BaseException:
            self.close()
            raise

    @property
    def card(self) -> ModelCard:
        """What the server says of the model; it takes no memory here."""
        if self._may_know_more:  # a server that loads models when they are asked for
            self._may_know_more = False
            self._about = self._loop.submit(self._look_up()).result()
        about = self._about
        meta = about.get("meta") or {}
        lengths = (about.get("max_model_len"), about.get("context_length"), meta.get("n_ctx"), meta.get("n_ctx_train"))
        return ModelCard(
            name=self._name,
            family=str(about.get("family") or ""),
            number_format=str(about.get("number_format") or meta.get("ftype") or ""),
            engine=f"at {urlsplit(self._url).netloc}",
            num_parameters=int(meta.get("n_params") or 0),
            context_length=next((int(length) for length in lengths if length), 0),
            weights_bytes=0,
            cache_bytes=0,
        )

    @property
    def sampling(self) -> Sampling:
        """The options that were given with the address; the server keeps its own defaults for all others to itself."""
        return self._sampling

    @property
    def chat_template(self) -> str | None:
        """None: the server renders conversations, and does not say how."""
        return None

    def chat(self, messages: Conversation, **options: Any) -> Reply:
        """The whole answer to a conversation; takes what `stream` takes, and raises what it raises."""
        return collect(self.stream(messages, **options))

    async def achat(self, messages: Conversation, **options: Any) -> Reply:
        """As `chat`, without ever blocking the event loop. Cancelling the task closes the connection."""
        return collect([event async for event in self.astream(messages, **options)])

    def stream(self, messages: Conversation, *, client: str = "", **options: Any) -> RemoteStream:
        """The events of the answer, as they come; the last is `Finished`. Closing the stream closes the connection.

        `options` are those of sampling, and the fields of `Wishes` (tools, response_format, …). `client` is not passed
        on: the server tells its clients apart by their keys.

        Raises `InvalidOption` or `InvalidMessages` at once; while it is read, `ContextOverflow`, `ModelNotFound`, or
        `RemoteFailed` with what the server said.
        """
        return RemoteStream(self._loop, self._chat(messages, options))

    def astream(self, messages: Conversation, *, client: str = "", **options: Any) -> AsyncGenerator[Event]:
        """As `stream`, without ever blocking the event loop."""
        return across(self._loop, self._chat(messages, options))

    def stream_text(self, prompt: str | Sequence[int], *, client: str = "", **options: Any) -> RemoteStream:
        """The events of what follows a text or token ids, without a chat template."""
        return RemoteStream(self._loop, self._text(prompt, options))

    def astream_text(self, prompt: str | Sequence[int], *, client: str = "", **options: Any) -> AsyncGenerator[Event]:
        """As `stream_text`, without ever blocking the event loop."""
        return across(self._loop, self._text(prompt, options))

    def embed(self, texts: Texts, *, pooling: str | None = None) -> list[Embedding]:
        """A vector of length 1 for each text, or for its token ids, as the server makes them.

        Raises `InvalidOption` for a `pooling`, which is the server's to decide, and what `chat` raises.
        """
        return self._loop.submit(self._embed(texts, pooling)).result()

    async def aembed(self, texts: Texts, *, pooling: str | None = None) -> list[Embedding]:
        """As `embed`, without ever blocking the event loop."""
        return await asyncio.wrap_future(self._loop.submit(self._embed(texts, pooling)))

    def tokenize(self, text: str) -> list[int]:
        """The token ids of ordinary text, on llama.cpp's server. Raises `UnsupportedModel` on others."""
        asked = {"content": text, "add_special": False, "parse_special": False}
        return [int(token_id) for token_id in self._ask_llama_cpp("/tokenize", asked)["tokens"]]

    def detokenize(self, token_ids: Sequence[int]) -> str:
        """The text of token ids, on llama.cpp's server. Raises `UnsupportedModel` on others."""
        return str(self._ask_llama_cpp("/detokenize", {"tokens": list(token_ids)})["content"])

    def count_tokens(
        self,
        messages: Conversation,
        *,
        tools: Sequence[ToolLike] | None = None,
        template_variables: Mapping[str, Any] | None = None,
    ) -> int:
        """How many tokens the conversation takes as a prompt: as the server counted it, if need be for one token."""
        if tools or template_variables:
            asked = self.chat(messages, max_new_tokens=1, tools=tools, template_variables=template_variables)
            return asked.usage.prompt_tokens
        key = _key([message.to_dict() for message in normalize(messages)])
        if key not in self._counts:
            self.chat(messages, max_new_tokens=1)
        return self._counts.get(key, 0)

    def close(self) -> None:
        """Close all connections. Answers that are still read end with the reason "cancelled"."""
        connection, self._connection = self._connection, None
        self._loop.close(None if connection is None else connection.close)

    def __repr__(self) -> str:
        return f"<RemoteModel {self._name} at {self._url}>"

    def _chat(self, messages: Conversation, options: Mapping[str, Any]) -> Work:
        wishes, sampling = Wishes.split({**self._options, **options})
        body = chat_body(self._name, messages, wishes, sampling, is_llama_cpp=self._is_llama_cpp)
        key = "" if wishes.tools or wishes.template_variables else _key(body["messages"])
        return self._ask(_CHAT, body, key)

    def _text(self, prompt: str | Sequence[int], options: Mapping[str, Any]) -> Work:
        options = {**self._options, **options}
        return self._ask(_TEXT, text_body(self._name, prompt, options, is_llama_cpp=self._is_llama_cpp), "")

    async def _embed(self, texts: Texts, pooling: str | None) -> list[Embedding]:
        body = remote_vectors.embedding_body(self._name, texts, pooling)
        return remote_vectors.embeddings(await self._connect().post(_EMBEDDINGS, body), len(texts))

    def _ask_llama_cpp(self, path: str, body: Mapping[str, Any]) -> Any:
        if not self._is_llama_cpp:
            raise remote_vectors.no_tokenizer(self._url)

        async def ask() -> Any:
            return await self._connect().post(path, body, is_at_root=True)

        return self._loop.submit(ask()).result()

    @property
    def _is_llama_cpp(self) -> bool:
        return self._about.get("owned_by") == _LLAMA_CPP

    def _ask(self, path: str, body: Mapping[str, Any], count_key: str) -> Work:
        """What reads the answer to one request, and hands over its events."""
        answer = Answer(time.perf_counter())

        async def work(post: Callable[[Item], None]) -> None:
            try:
                async for event in self._connect().answer(path, body, answer):
                    post(event)
                for event in answer.finish():
                    self._note(event, count_key)
                    post(event)
                post(None)
            except asyncio.CancelledError:
                for event in answer.finish("cancelled"):
                    post(event)
                post(None)
                raise
            except BaseException as error:  # noqa: BLE001  (the reader raises it)
                post(self._explained(error))

        return work

    def _explained(self, error: BaseException) -> BaseException:
        """What the reader of an answer is told of an error; a server that is known better can say more."""
        return error

    def _note(self, event: Event, key: str) -> None:
        """Remember how many tokens a conversation took, and that the model is loaded now."""
        if self._is_brief and isinstance(event, Finished):
            self._is_brief, self._may_know_more = False, True
        if key and isinstance(event, Finished) and event.usage.prompt_tokens:
            while len(self._counts) >= _MAX_KNOWN_COUNTS:
                self._counts.pop(next(iter(self._counts)))
            self._counts[key] = event.usage.prompt_tokens

    def _connect(self) -> Connection:
        """The connection, made in the event loop that uses it."""
        if self._connection is None:
            self._connection = Connection(
                self._url, self._headers, max_retries=self._max_retries, timeout_s=self._timeout_s
            )
        return self._connection

    async def _look_up(self) -> Mapping[str, Any]:
        """What the server says of the model; of one that is not named, its name as well."""
        listed = await self._connect().get(_MODELS)
        rows = listed.get("data") if isinstance(listed, dict) else None
        about = {str(row["id"]): row for row in rows or () if isinstance(row, dict) and "id" in row}
        if not self._name and len(about) == 1:
            self._name = next(iter(about))
        if not self._name:
            raise InvalidOption(
                f"{self._url} has {len(about) or 'no list of its'} models, and none was named",
                hint=f"name one: {', '.join(sorted(about)[:20]) or 'as the server knows it'}",
            )
        if about and self._name not in about:
            raise ModelNotFound(f"{self._url} has no model {self._name!r}", hint=did_you_mean(self._name, about))
        return about.get(self._name, {})


def _base(url: str) -> str:
    """The address that paths are put behind."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidOption(f"{url!r} is no address of a server", hint="write it as https://host/v1")
    if parts.query or parts.fragment or parts.username:
        raise InvalidOption(f"{url!r} has parts that an address here cannot have", hint="pass a key as api_key")
    path = parts.path.rstrip("/").removesuffix(_CHAT).removesuffix(_TEXT)
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def _key(messages: Any) -> str:
    return hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()
