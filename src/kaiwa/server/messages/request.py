"""The request of `/v1/messages`, and what it asks of a model."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kaiwa.sampling import MAX_STOP_STRINGS
from kaiwa.server.fields import ModelName, StopString
from kaiwa.server.strict import WHOLE, Strict, option

TEXT_ONLY = "models here read text only"


class CacheControl(Strict):
    """A wish to keep what is computed. Everything is kept as long as there is room."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class Block(Strict):
    """What all parts of a message have in common."""

    cache_control: CacheControl | None = None

    unsupported: ClassVar = {"citations": "models here quote no sources", "source": TEXT_ONLY}


class TextBlock(Block):
    """Text."""

    type: Literal["text"]
    text: str


class ThinkingBlock(Strict):
    """What the model thought before it answered."""

    type: Literal["thinking"]
    thinking: str
    signature: str | None = None


class ToolUseBlock(Block):
    """A call that the model asked for."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]

    unsupported: ClassVar = {"caller": "every call is the model's own"}


class ToolResultBlock(Block):
    """What a call gave back."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: str | list[TextBlock] | None = None
    is_error: bool | None = None


UserBlock = Annotated[TextBlock | ToolResultBlock, Field(discriminator="type")]
AssistantBlock = Annotated[TextBlock | ThinkingBlock | ToolUseBlock, Field(discriminator="type")]


class UserTurn(Strict):
    """What a person says, and what tools gave back."""

    role: Literal["user"]
    content: str | Annotated[list[UserBlock], Field(min_length=1)]


class AssistantTurn(Strict):
    """What the model said. As the last turn it is gone on with."""

    role: Literal["assistant"]
    content: str | Annotated[list[AssistantBlock], Field(min_length=1)]


Turn = Annotated[UserTurn | AssistantTurn, Field(discriminator="role")]


class Tool(Strict):
    """What a model may call."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
    description: str | None = None
    input_schema: dict[str, Any]
    type: Literal["custom"] | None = None
    strict: bool | None = None
    cache_control: CacheControl | None = None


class ToolChoice(Strict):
    """Which tools must be called."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = Field(default=None, description="of the tool, where the type is tool")
    disable_parallel_tool_use: bool | None = None


class Thinking(Strict):
    """Whether the model thinks before it answers."""

    type: Literal["adaptive", "disabled"]

    unsupported: ClassVar = {
        "budget_tokens": "a model thinks until it is done or max_tokens are written; use the type adaptive",
        "display": "what a model thinks is always shown",
    }


class JsonFormat(Strict):
    """The shape of the answer."""

    type: Literal["json_schema"]
    json_schema: dict[str, Any] = Field(alias="schema")


class OutputConfig(Strict):
    """How much to think, and the shape of the answer."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: JsonFormat | None = None


class Metadata(Strict):
    """Who asks."""

    user_id: str | None = Field(default=None, description="whose conversations share what is computed of them")


class CountRequest(Strict):
    """A conversation to count the tokens of."""

    model: ModelName
    messages: Annotated[list[Turn], Field(min_length=1)]
    system: str | list[TextBlock] | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    cache_control: CacheControl | None = None


class MessagesRequest(CountRequest):
    """A conversation to answer."""

    max_tokens: Annotated[int, option("max_new_tokens"), WHOLE]
    stream: bool | None = None
    temperature: Annotated[float, option("temperature")] | None = None
    top_p: Annotated[float, option("top_p")] | None = None
    top_k: Annotated[int, option("top_k"), WHOLE] | None = None
    stop_sequences: Annotated[list[StopString], Field(max_length=MAX_STOP_STRINGS)] | None = None
    metadata: Metadata | None = None
    service_tier: Literal["auto", "standard_only"] | None = None

    unsupported: ClassVar = {
        "container": "nothing is run here",
        "context_management": "nothing is taken out of a conversation here",
        "mcp_servers": "this server fetches nothing",
        "inference_geo": "models run on this machine",
    }
