"""Items: what goes into a response and comes out of one, and the turns that chat templates make of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field
from pydantic import Tag as Tagged

from kaiwa.server.strict import Strict

TEXT_ONLY = "models here read text only"
Status = Literal["in_progress", "completed", "incomplete"]


class TextPart(Strict):
    """A part of a message."""

    type: Literal["input_text", "output_text", "text"]
    text: str
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None
    logprobs: list[Any] | None = Field(default=None, description="as an answer had them; they change nothing")

    unsupported: ClassVar = dict.fromkeys(("image_url", "file_id", "file_data", "input_audio", "detail"), TEXT_ONLY)


class MessageItem(Strict):
    """One turn of the conversation."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[list[TextPart], Field(min_length=1)]
    id: str | None = None
    status: Status | None = None

    unsupported: ClassVar = {"phase": "a turn is an answer, or it is none"}


class CallItem(Strict):
    """A call that the model asked for. `arguments` is JSON text."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: Status | None = None

    unsupported: ClassVar = {"caller": "every call is the model's own", "namespace": "functions have plain names"}


class OutputItem(Strict):
    """What a call gave back."""

    type: Literal["function_call_output"]
    call_id: str
    output: str | Annotated[list[TextPart], Field(min_length=1)]
    id: str | None = None
    status: Status | None = None


class ReasoningText(Strict):
    """A piece of what the model thought."""

    type: Literal["reasoning_text"]
    text: str


class ReasoningItem(Strict):
    """What the model thought."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: Annotated[list[Any], Field(max_length=0)] | None = None
    content: list[ReasoningText] | None = None
    status: Status | None = None

    unsupported: ClassVar = {"encrypted_content": "thoughts are plain text here"}


def _kind(item: Any) -> str:
    """The type of an item; a message may leave it out."""
    kind = item.get("type") if isinstance(item, dict) else getattr(item, "type", None)
    return "message" if kind is None else str(kind)


Item = Annotated[
    Annotated[MessageItem, Tagged("message")]
    | Annotated[CallItem, Tagged("function_call")]
    | Annotated[OutputItem, Tagged("function_call_output")]
    | Annotated[ReasoningItem, Tagged("reasoning")],
    Discriminator(_kind),
]


def turns(items: Iterable[Item]) -> list[dict[str, Any]]:
    """The turns that the items are: what the model thought, said and called in a row is one of them."""
    found: list[dict[str, Any]] = []
    for item in items:
        if isinstance(item, OutputItem):
            found.append({"role": "tool", "tool_call_id": item.call_id, "content": _text(item.output)})
        elif isinstance(item, MessageItem) and item.role != "assistant":
            found.append({"role": item.role, "content": _text(item.content)})
        elif isinstance(item, MessageItem):
            turn = _assistant(found, "content")
            turn["content"] = _text(item.content)
        elif isinstance(item, CallItem):
            function = {"name": item.name, "arguments": item.arguments}
            call = {"id": item.call_id, "type": "function", "function": function}
            _assistant(found).setdefault("tool_calls", []).append(call)
        elif item.content:
            turn = _assistant(found, "content", "tool_calls", "reasoning_content")
            turn["reasoning_content"] = "".join(piece.text for piece in item.content)
    for turn in found:
        turn.setdefault("content", None if "tool_calls" in turn else "")
    return found


def _assistant(turns: list[dict[str, Any]], *no_more_after: str) -> dict[str, Any]:
    """The model's turn that is being put together; a new one where the last has what can only come once or later."""
    if not turns or turns[-1]["role"] != "assistant" or any(name in turns[-1] for name in no_more_after):
        turns.append({"role": "assistant"})
    return turns[-1]


def _text(content: str | Sequence[TextPart]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)
