"""The request of `/v1/chat/completions`, and what it asks of a model."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kaiwa.server.ask import ChatAsk
from kaiwa.server.errors import incompatible
from kaiwa.server.fields import Choices, ModelName, SamplingFields, StreamOptions
from kaiwa.server.strict import WHOLE, Strict, option

MAX_TOP_LOGPROBS = 20
NO_STORE = "nothing is stored here"
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ContentPart(Strict):
    """A part of a message."""

    type: Literal["text"]
    text: str

    unsupported: ClassVar = dict.fromkeys(
        ("image_url", "input_audio", "file", "audio_url", "video_url"), "models here read text only"
    )


class CalledFunction(Strict):
    """The function of a call, with its arguments as JSON text."""

    name: str
    arguments: str


class CalledTool(Strict):
    """A call that an earlier answer asked for."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction
    index: Annotated[int, WHOLE] | None = Field(default=None, description="as streams have it; the order counts")


Content = str | Annotated[list[ContentPart], Field(min_length=1)]


class SystemMessage(Strict):
    """What holds for the whole conversation."""

    role: Literal["system", "developer"]
    content: Content
    name: str | None = None


class UserMessage(Strict):
    """What a person says."""

    role: Literal["user"]
    content: Content
    name: str | None = None


class AssistantMessage(Strict):
    """What the model said before: text, calls of tools, or both."""

    role: Literal["assistant"]
    content: Content | None = None
    name: str | None = None
    tool_calls: list[CalledTool] | None = None
    reasoning_content: str | None = Field(default=None, description="what the model thought before it")
    reasoning: str | None = Field(default=None, description="another name of reasoning_content")

    unsupported: ClassVar = {
        "refusal": "models here answer in text only",
        "audio": "models here answer in text only",
        "annotations": "models here read text only",
        "function_call": "use tool_calls",
    }


class ToolMessage(Strict):
    """What a tool gave back."""

    role: Literal["tool"]
    content: Content
    tool_call_id: str
    name: str | None = None


ChatMessage = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class Function(Strict):
    """What a model may call. `parameters` is a JSON schema."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Strict):
    """A tool. Only functions are."""

    type: Literal["function"]
    function: Function


class NamedFunction(Strict):
    """A function by its name."""

    name: str


class NamedTool(Strict):
    """The one tool that must be called."""

    type: Literal["function"]
    function: NamedFunction


class JsonSchema(Strict):
    """The shape that the answer must have."""

    name: str
    description: str | None = None
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


class ResponseFormat(Strict):
    """What the answer is: text, any JSON object, or JSON of a schema."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class ChatRequest(SamplingFields):
    """A conversation to answer."""

    model: ModelName
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_completion_tokens: Annotated[int, option("max_new_tokens"), WHOLE] | None = None
    max_tokens: Annotated[int, option("max_new_tokens"), WHOLE] | None = None
    n: Choices | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS), WHOLE] | None = None
    response_format: ResponseFormat | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: ReasoningEffort | None = Field(default=None, description="goes to the model's chat template")
    chat_template_kwargs: dict[str, Any] | None = Field(default=None, description="variables of the chat template")
    continue_final_message: bool | None = Field(default=None, description="go on with a last turn of the assistant")
    user: str | None = Field(default=None, description="whose conversations share what is computed of them")
    prompt_cache_key: str | None = Field(default=None, description="comes before user")
    modalities: list[Literal["text"]] | None = None
    service_tier: Literal["auto", "default"] | None = None
    store: Literal[False] | None = None

    unsupported: ClassVar = {
        "audio": "models here answer in text only",
        "functions": "use tools",
        "function_call": "use tool_choice",
        "metadata": NO_STORE,
        "moderation": "nothing is moderated here",
        "prediction": "what an answer repeats is guessed from its prompt",
        "prompt_cache_options": "what requests of one key share is always reused",
        "prompt_cache_retention": "what requests of one key share is always reused",
        "safety_identifier": "nobody is watched here",
        "verbosity": "say it in a message",
        "web_search_options": "this server fetches nothing",
    }


def ask(request: ChatRequest) -> ChatAsk:
    """What the request asks of a model. Raises `ApiError` for fields that contradict each other."""
    options = {
        **request.sampling_options(),
        "max_new_tokens": _max_new_tokens(request),
        "num_logprobs": _num_logprobs(request),
        "template_variables": _template_variables(request),
        "continue_final_message": request.continue_final_message,
        "response_format": _response_format(request),
        **_tool_options(request),
    }
    return ChatAsk(
        request.model,
        [_turn(index, message) for index, message in enumerate(request.messages)],
        {name: value for name, value in options.items() if value is not None},
        request.n or 1,
        request.prompt_cache_key or request.user or "",
    )


def _turn(index: int, message: ChatMessage) -> dict[str, Any]:
    """A message as chat templates read it."""
    fields = message.model_dump(exclude_none=True)
    if isinstance(message, AssistantMessage):
        if not message.tool_calls and message.content is None:
            raise incompatible(f"messages[{index}].content", "an assistant's message has content, tool_calls or both")
        for call in fields.get("tool_calls", ()):
            call.pop("index", None)
        reasoning = fields.pop("reasoning", None)
        if reasoning is not None:
            fields.setdefault("reasoning_content", reasoning)
        fields.setdefault("content", None)
    return fields


def _tool_options(request: ChatRequest) -> dict[str, Any]:
    choice = request.tool_choice
    if not request.tools:
        if choice in (None, "none", "auto") and request.parallel_tool_calls is None:
            return {}
        param = "parallel_tool_calls" if choice in (None, "none", "auto") else "tool_choice"
        raise incompatible(param, f"{param} is given, and no tools")
    return {
        "tools": [tool.model_dump(exclude_none=True) for tool in request.tools],
        "tool_choice": choice.model_dump() if isinstance(choice, NamedTool) else choice,
        "parallel_tool_calls": request.parallel_tool_calls,
    }


def _num_logprobs(request: ChatRequest) -> int | None:
    if request.logprobs:
        return request.top_logprobs or 0
    if request.top_logprobs is not None:
        raise incompatible("top_logprobs", "top_logprobs is given without logprobs")
    return None


def _response_format(request: ChatRequest) -> dict[str, Any] | None:
    wanted = request.response_format
    if wanted is None or wanted.type == "text":
        return None
    if (wanted.type == "json_schema") != (wanted.json_schema is not None):
        raise incompatible(
            "response_format.json_schema",
            "response_format has a json_schema where its type is 'json_schema', and only there",
        )
    return wanted.model_dump(by_alias=True, exclude_none=True)


def _max_new_tokens(request: ChatRequest) -> int | None:
    if request.max_tokens is None or request.max_completion_tokens is None:
        return request.max_completion_tokens or request.max_tokens
    if request.max_tokens != request.max_completion_tokens:
        raise incompatible(
            "max_tokens",
            f"max_tokens is {request.max_tokens} and max_completion_tokens {request.max_completion_tokens}: "
            "both mean the same, so leave one out",
        )
    return request.max_tokens


def _template_variables(request: ChatRequest) -> dict[str, Any] | None:
    """Templates know the effort by its name, or as a switch."""
    variables = dict(request.chat_template_kwargs or {})
    if request.reasoning_effort is not None:
        variables.setdefault("reasoning_effort", request.reasoning_effort)
        variables.setdefault("enable_thinking", request.reasoning_effort != "none")
    return variables or None
