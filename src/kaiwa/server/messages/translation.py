"""From Anthropic's words to those that chat templates know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kaiwa.server.ask import ChatAsk
from kaiwa.server.errors import incompatible
from kaiwa.server.messages.request import (
    AssistantTurn,
    CountRequest,
    MessagesRequest,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    UserTurn,
)


def ask(request: MessagesRequest) -> ChatAsk:
    """What the request asks of a model. Raises `ApiError` for fields that contradict each other."""
    options = {
        "max_new_tokens": request.max_tokens,
        "temperature": request.temperature,
        "do_sample": True if request.temperature else None,
        "top_p": request.top_p,
        "top_k": request.top_k,
        "stop": request.stop_sequences,
        "continue_final_message": True if request.messages[-1].role == "assistant" else None,
        "response_format": _response_format(request),
        **prompt_options(request),
        **_tool_choice(request),
    }
    return ChatAsk(
        request.model,
        messages(request),
        {name: value for name, value in options.items() if value is not None},
        scope=(request.metadata.user_id or "") if request.metadata else "",
    )


def prompt_options(request: CountRequest) -> dict[str, Any]:
    """What of the request goes into the prompt, beside the messages."""
    options: dict[str, Any] = {}
    if request.tools:
        options["tools"] = [_tool(tool) for tool in request.tools]
    variables: dict[str, Any] = {}
    if request.output_config is not None and request.output_config.effort is not None:
        variables["reasoning_effort"] = request.output_config.effort
    if request.thinking is not None:
        variables["enable_thinking"] = request.thinking.type == "adaptive"
    if variables:
        options["template_variables"] = variables
    return options


def messages(request: CountRequest) -> list[dict[str, Any]]:
    """The conversation as chat templates read it."""
    turns: list[dict[str, Any]] = []
    if request.system:
        turns.append({"role": "system", "content": _text(request.system)})
    for turn in request.messages:
        turns += _user(turn) if isinstance(turn, UserTurn) else [_assistant(turn)]
    return turns


def _user(turn: UserTurn) -> Iterator[dict[str, Any]]:
    """A turn of each kind in a row: results of tools are messages of their own."""
    if isinstance(turn.content, str):
        yield {"role": "user", "content": turn.content}
        return
    said: list[str] = []
    for block in turn.content:
        if isinstance(block, TextBlock):
            said.append(block.text)
            continue
        if said:
            yield {"role": "user", "content": "\n\n".join(said)}
            said = []
        yield _result(block)
    if said:
        yield {"role": "user", "content": "\n\n".join(said)}


def _result(block: ToolResultBlock) -> dict[str, Any]:
    text = _text(block.content or "")
    return {
        "role": "tool",
        "tool_call_id": block.tool_use_id,
        "content": f"Error: {text}" if block.is_error else text,
    }


def _assistant(turn: AssistantTurn) -> dict[str, Any]:
    if isinstance(turn.content, str):
        return {"role": "assistant", "content": turn.content}
    texts = [block.text for block in turn.content if isinstance(block, TextBlock)]
    thoughts = [block.thinking for block in turn.content if isinstance(block, ThinkingBlock)]
    calls = [_call(block) for block in turn.content if isinstance(block, ToolUseBlock)]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def _call(block: ToolUseBlock) -> dict[str, Any]:
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": block.input}}


def _text(content: str | Sequence[TextBlock]) -> str:
    return content if isinstance(content, str) else "\n\n".join(block.text for block in content)


def _tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "parameters": tool.input_schema}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _tool_choice(request: MessagesRequest) -> dict[str, Any]:
    choice = request.tool_choice
    if choice is None:
        return {}
    if (choice.type == "tool") != (choice.name is not None):
        raise incompatible("tool_choice.name", "tool_choice has a name where its type is 'tool', and only there")
    if not request.tools:
        if choice.type in ("auto", "none"):
            return {}
        raise incompatible("tool_choice", f"a tool must be called ({choice.type}), and no tools are given")
    words: dict[str, Any] = {"auto": "auto", "any": "required", "none": "none"}
    named = {"type": "function", "function": {"name": choice.name}}
    options: dict[str, Any] = {"tool_choice": words.get(choice.type, named)}
    if choice.disable_parallel_tool_use:
        options["parallel_tool_calls"] = False
    return options


def _response_format(request: MessagesRequest) -> dict[str, Any] | None:
    wanted = request.output_config.format if request.output_config else None
    if wanted is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": wanted.json_schema, "strict": True}}
