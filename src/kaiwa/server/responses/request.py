"""The request of `/v1/responses`, and what it asks of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kaiwa.server.ask import ChatAsk
from kaiwa.server.chat.request import MAX_TOP_LOGPROBS, ReasoningEffort
from kaiwa.server.errors import incompatible
from kaiwa.server.fields import ModelName, SamplingFields
from kaiwa.server.responses.items import Item, turns
from kaiwa.server.strict import WHOLE, Strict, option

LOGPROBS = "message.output_text.logprobs"


class FunctionTool(Strict):
    """What a model may call. `parameters` is a JSON schema."""

    type: Literal["function"]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class NamedTool(Strict):
    """The one tool that must be called."""

    type: Literal["function"]
    name: str


class TextFormat(Strict):
    """What the answer is: text, any JSON object, or JSON of a schema."""

    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


class TextConfig(Strict):
    """How the answer is written."""

    format: TextFormat | None = None

    unsupported: ClassVar = {"verbosity": "say it in a message"}


class Reasoning(Strict):
    """How much the model thinks."""

    effort: ReasoningEffort | None = Field(default=None, description="goes to the model's chat template")

    unsupported: ClassVar = dict.fromkeys(
        ("summary", "generate_summary", "context"), "what a model thinks is shown as it is"
    )


class StreamOptions(Strict):
    """What a stream tells beside the answer."""

    include_obfuscation: Literal[False] | None = None


class ResponseRequest(SamplingFields):
    """Items to answer."""

    model: ModelName
    input: str | Annotated[list[Item], Field(min_length=1)]
    instructions: str | None = Field(default=None, description="a system message for this response only")
    previous_response_id: str | None = Field(default=None, description="the response to go on after")
    store: bool | None = Field(default=None, description="keep it for previous_response_id; null is yes")
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_output_tokens: Annotated[int, option("max_new_tokens"), WHOLE] | None = None
    text: TextConfig | None = None
    reasoning: Reasoning | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    include: list[Literal["message.output_text.logprobs"]] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS), WHOLE] | None = None
    metadata: Annotated[dict[str, str], Field(max_length=16)] | None = None
    user: str | None = Field(default=None, description="whose conversations share what is computed of them")
    prompt_cache_key: str | None = Field(default=None, description="comes before user")
    truncation: Literal["disabled"] | None = None
    background: Literal[False] | None = None
    service_tier: Literal["auto", "default"] | None = None

    unsupported: ClassVar = {
        "context_management": "nothing is taken out of a conversation here",
        "conversation": "use previous_response_id",
        "max_tool_calls": "tools are called by who asks",
        "moderation": "nothing is moderated here",
        "prompt": "no prompts are kept here",
        "prompt_cache_options": "what requests of one key share is always reused",
        "prompt_cache_retention": "what requests of one key share is always reused",
        "safety_identifier": "nobody is watched here",
    }


def ask(request: ResponseRequest, earlier: Sequence[dict[str, Any]]) -> ChatAsk:
    """What the request asks of a model after the `earlier` turns. Raises `ApiError` for fields that contradict."""
    if request.stream_options is not None and not request.stream:
        raise incompatible("stream_options", "stream_options is given without stream")
    options = {
        **request.sampling_options(),
        "max_new_tokens": request.max_output_tokens,
        "num_logprobs": _num_logprobs(request),
        "template_variables": _template_variables(request),
        "response_format": _response_format(request),
        **_tool_options(request),
    }
    system = [{"role": "system", "content": request.instructions}] if request.instructions else []
    return ChatAsk(
        request.model,
        [*system, *earlier, *new_turns(request)],
        {name: value for name, value in options.items() if value is not None},
        scope=request.prompt_cache_key or request.user or "",
    )


def new_turns(request: ResponseRequest) -> list[dict[str, Any]]:
    """The turns that the request adds to the conversation."""
    if isinstance(request.input, str):
        return [{"role": "user", "content": request.input}]
    return turns(request.input)


def _num_logprobs(request: ResponseRequest) -> int | None:
    if LOGPROBS in (request.include or ()):
        return request.top_logprobs or 0
    if request.top_logprobs is not None:
        raise incompatible("top_logprobs", f"top_logprobs is given, and include has no {LOGPROBS!r}")
    return None


def _template_variables(request: ResponseRequest) -> dict[str, Any] | None:
    effort = request.reasoning.effort if request.reasoning else None
    return None if effort is None else {"reasoning_effort": effort, "enable_thinking": effort != "none"}


def _response_format(request: ResponseRequest) -> dict[str, Any] | None:
    wanted = request.text.format if request.text else None
    if wanted is None:
        return None
    has_schema = wanted.type == "json_schema"
    fields = wanted.model_dump(by_alias=True, exclude_none=True, exclude={"type"})
    if has_schema != ("schema" in fields) or has_schema != ("name" in fields) or (fields and not has_schema):
        raise incompatible(
            "text.format", "text.format has a name and a schema where its type is 'json_schema', and only there"
        )
    if has_schema:
        return {"type": "json_schema", "json_schema": fields}
    return {"type": "json_object"} if wanted.type == "json_object" else None


def _tool_options(request: ResponseRequest) -> dict[str, Any]:
    choice = request.tool_choice
    if not request.tools:
        if isinstance(choice, NamedTool) or choice == "required":
            raise incompatible("tool_choice", "tool_choice is given, and no tools")
        return {}
    tools = [tool.model_dump(exclude_none=True, exclude={"type"}) for tool in request.tools]
    named = {"type": "function", "function": {"name": choice.name}} if isinstance(choice, NamedTool) else choice
    return {
        "tools": [{"type": "function", "function": tool} for tool in tools],
        "tool_choice": named,
        "parallel_tool_calls": request.parallel_tool_calls,
    }
