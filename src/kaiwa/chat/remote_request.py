"""What is asked of a server that speaks OpenAI's API, in its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from kaiwa.chat.tool_schema import ToolLike, schemas
from kaiwa.messages import Conversation, normalize
from kaiwa.sampling import Sampling

# Our options, and what OpenAI's API calls them. Those without a name there go by our own, as vLLM and SGLang take them.
_NAMES = {"max_new_tokens": "max_tokens"}
_LLAMA_CPP_NAMES = {**_NAMES, "repetition_penalty": "repeat_penalty"}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a call asks for besides the messages and the options of sampling."""

    tools: Sequence[ToolLike] | None = None
    tool_choice: str | Mapping[str, Any] = "auto"
    parallel_tool_calls: bool = True
    response_format: Mapping[str, Any] | None = None
    template_variables: Mapping[str, Any] | None = None
    continue_final_message: bool | None = None
    num_logprobs: int | None = None

    @classmethod
    def split(cls, options: Mapping[str, Any]) -> tuple[Wishes, dict[str, Any]]:
        """The wishes among the keyword arguments of a call, and the rest, which are options of sampling."""
        names = {field.name for field in fields(cls)}
        wishes = cls(**{name: value for name, value in options.items() if name in names})
        return wishes, {name: value for name, value in options.items() if name not in names}


def chat_body(
    model: str, messages: Conversation, wishes: Wishes, options: Mapping[str, Any], *, is_llama_cpp: bool = False
) -> dict[str, Any]:
    """The JSON object for `/chat/completions`. Only what a person chose is in it: the rest is the server's to decide.

    Raises `InvalidMessages` or `InvalidOption`.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": [message.to_dict() for message in normalize(messages)],
        **sampling_fields(options, is_llama_cpp=is_llama_cpp),
        **_STREAMED,
    }
    if wishes.tools:
        body |= {"tools": schemas(wishes.tools), "tool_choice": wishes.tool_choice}
        if not wishes.parallel_tool_calls:
            body["parallel_tool_calls"] = False
    if wishes.response_format is not None:
        body["response_format"] = dict(wishes.response_format)
    if wishes.template_variables:
        body["chat_template_kwargs"] = dict(wishes.template_variables)
    if wishes.continue_final_message:
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    if wishes.num_logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": wishes.num_logprobs}
    return body


def text_body(
    model: str, prompt: str | Sequence[int], options: Mapping[str, Any], *, is_llama_cpp: bool = False
) -> dict[str, Any]:
    """The JSON object for `/completions`. Raises `InvalidOption`."""
    text = prompt if isinstance(prompt, str) else list(prompt)
    options = dict(options)
    num_logprobs = options.pop("num_logprobs", None)
    logprobs = {} if num_logprobs is None else {"logprobs": num_logprobs}
    sampling = sampling_fields(options, is_llama_cpp=is_llama_cpp)
    return {"model": model, "prompt": text, **sampling, **logprobs, **_STREAMED}


def sampling_fields(options: Mapping[str, Any], *, is_llama_cpp: bool = False) -> dict[str, Any]:
    """The options of sampling that were chosen, checked, in the server's words. Raises `InvalidOption`."""
    checked = Sampling().updated(options)
    names = _LLAMA_CPP_NAMES if is_llama_cpp else _NAMES
    chosen = {name: getattr(checked, name) for name in options if name != "do_sample"}
    renamed = {
        names.get(name, name): list(value) if isinstance(value, tuple) else value
        for name, value in chosen.items()
        if value is not None
    }
    if checked.is_greedy:
        renamed["temperature"] = 0.0
    return renamed


_STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
