"""What one call of a pipeline asks for, in transformers' words: checked, and made into Kaiwa's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kaiwa.chat.remote import RemoteModel
from kaiwa.chat.tool_schema import schemas
from kaiwa.compat.transformers import flags
from kaiwa.compat.transformers.flags import Flags
from kaiwa.compat.transformers.generation_config import GenerationConfig
from kaiwa.compat.transformers.model import loaded_assistant
from kaiwa.compat.transformers.streamers import TextStreamer
from kaiwa.errors import InvalidMessages, InvalidOption
from kaiwa.runtime.llm import LLM

_NAMES = frozenset(
    (
        *("return_full_text", "return_tensors", "return_text", "return_type", "clean_up_tokenization_spaces"),
        *("prefix", "handle_long_generation", "truncation", "padding", "add_special_tokens", "skip_special_tokens"),
        *("continue_final_message", "tokenizer_encode_kwargs", "tools", "documents", "batch_size", "num_workers"),
        *("streamer", "generation_config", "tokenizer", "stop_sequence", "assistant_model", "assistant_tokenizer"),
    )
)
# The values of these that change nothing; what else they say cannot be done here, and why.
_WITHOUT_EFFECT: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "return_tensors": ((False,), "AutoModelForCausalLM.generate gives token ids"),
    "return_text": ((True,), "leave it out"),
    "clean_up_tokenization_spaces": ((False,), "leave it out"),
    "handle_long_generation": ((), "a prompt that does not fit is refused; shorten it, or leave messages out"),
    "truncation": ((False, "do_not_truncate"), "a prompt that does not fit is refused, never cut"),
    "padding": ((False, True, "longest"), "leave it out"),
    "add_special_tokens": ((True, False), "leave it out"),
    "skip_special_tokens": ((True,), "special tokens of an answer are never shown"),
    "num_workers": ((0, 1), "leave it out: several prompts are answered together anyway"),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `variables` go to the chat template."""

    flags: Flags
    is_full: bool = True
    """Whether the prompt is part of what is returned."""
    prefix: str = ""
    continue_final_message: bool | None = None
    tools: list[Mapping[str, Any]] | None = None
    documents: Sequence[Mapping[str, Any]] | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    streamer: TextStreamer | None = None
    assistant_model: LLM | None = None
    batch_size: int = 0
    """How many prompts are answered at once; 0 where nobody says."""

    def continues(self, chat: str | Sequence[Mapping[str, Any]]) -> bool:
        """Whether the last message is to be continued: by default, where it is the assistant's.

        Raises `InvalidMessages` where that is asked for, and it is not.
        """
        if isinstance(chat, str) or not chat:
            return False
        is_assistant = chat[-1].get("role") == "assistant"
        if self.continue_final_message and not is_assistant:
            raise InvalidMessages(
                f"continue_final_message=True, and the last message is from {chat[-1].get('role')!r}",
                hint="only what the assistant said can be continued",
            )
        return is_assistant if self.continue_final_message is None else self.continue_final_message

    def check_text(self) -> None:
        """Raises `InvalidOption` for what only chats can have."""
        for name, value in (("tools", self.tools), ("documents", self.documents)):
            if value:
                raise InvalidOption(f"{name} need a chat, and the prompt is a text", hint="pass a list of messages")

    def options_for(self, model: LLM | RemoteModel, prompt: str | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The options of sampling for this prompt."""
        options = flags.completed(self.flags.options, model.sampling)
        if isinstance(model, RemoteModel) and "top_k" not in self.flags.options:
            options.pop("top_k", None)  # many servers refuse it
        if self.assistant_model is not None:
            if isinstance(model, RemoteModel):
                raise InvalidOption("a model elsewhere takes no assistant_model", hint="leave it out")
            options["assistant_model"] = self.assistant_model
        if self.flags.max_length is not None:
            options["max_new_tokens"] = flags.room(self.flags.max_length, self._count(model, prompt))
        return options

    def _count(self, model: LLM | RemoteModel, prompt: str | Sequence[Mapping[str, Any]]) -> int:
        if not isinstance(prompt, str):
            return model.count_tokens(prompt)
        if isinstance(model, RemoteModel):
            raise InvalidOption("max_length cannot be used with a model elsewhere", hint="use max_new_tokens")
        return len(model.tokenize(self.prefix + prompt))


def read_call(given: Mapping[str, Any]) -> Call:
    """The keyword arguments of a call. Raises `InvalidOption`."""
    given = {name: value for name, value in given.items() if value is not None}
    ours = {name: given[name] for name in given if name in _NAMES and name != "stop_sequence"}
    for name, (harmless, reason) in _WITHOUT_EFFECT.items():
        if name in ours and ours[name] not in harmless:
            raise InvalidOption(f"{name}={ours[name]!r} would have no effect here", hint=reason)
    streamer = ours.get("streamer")
    if streamer is not None and not isinstance(streamer, TextStreamer):
        raise InvalidOption(
            f"streamer={streamer!r} is none of Kaiwa's",
            hint="use kw.TextStreamer, kw.TextIteratorStreamer or a subclass",
        )
    config = ours.get("generation_config")
    defaults = config.to_dict() if isinstance(config, GenerationConfig) else dict(config or {})
    rest = {name: value for name, value in given.items() if name not in ours}
    variables = dict(ours.get("tokenizer_encode_kwargs") or {})
    documents = ours.get("documents")
    if documents is not None:
        variables["documents"] = list(documents)
    return Call(
        flags.read({**defaults, **rest}, also=_NAMES),
        is_full=_is_full(ours),
        prefix=str(ours.get("prefix", "")),
        continue_final_message=ours.get("continue_final_message"),
        tools=schemas(ours["tools"]) if "tools" in ours else None,
        documents=documents,
        variables=variables,
        streamer=streamer,
        assistant_model=loaded_assistant(ours["assistant_model"]) if "assistant_model" in ours else None,
        batch_size=_batch_size(ours.get("batch_size", 0)),
    )


def _is_full(given: Mapping[str, Any]) -> bool:
    value = given.get("return_full_text", True)
    if not isinstance(value, bool):
        raise InvalidOption(f"return_full_text={value!r} is impossible", hint="it is True or False")
    return value


def _batch_size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidOption(f"batch_size={value!r} is impossible", hint="it is a whole number of at least 1")
    return value
