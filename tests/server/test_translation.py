"""What each API's request asks of a model: pure functions, without a server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kaiwa.server.chat.request import ChatRequest
from kaiwa.server.chat.request import ask as ask_chat
from kaiwa.server.completions.request import CompletionRequest
from kaiwa.server.completions.request import ask as ask_completion
from kaiwa.server.errors import ApiError
from kaiwa.server.messages import translation
from kaiwa.server.messages.request import MessagesRequest
from kaiwa.server.responses.request import ResponseRequest
from kaiwa.server.responses.request import ask as ask_response
from kaiwa.server.strict import parse

HELLO = {"role": "user", "content": "Hello"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def chat(**fields: Any) -> Any:
    body = {"model": "m", "messages": [HELLO], **fields}
    return ask_chat(parse(ChatRequest, json.dumps(body).encode(), max_depth=64))


def messages(**fields: Any) -> Any:
    body = {"model": "m", "max_tokens": 9, "messages": [HELLO], **fields}
    return translation.ask(parse(MessagesRequest, json.dumps(body).encode(), max_depth=64))


def response(earlier: Any = (), **fields: Any) -> Any:
    body = {"model": "m", "input": "Hello", **fields}
    return ask_response(parse(ResponseRequest, json.dumps(body).encode(), max_depth=64), earlier)


def test_what_is_not_given_is_left_to_the_model() -> None:
    assert chat().options == response().options == {}
    assert messages().options == {"max_new_tokens": 9}


def test_a_temperature_alone_means_that_tokens_are_drawn() -> None:
    assert chat(temperature=1.3).options == {"temperature": 1.3, "do_sample": True}
    assert chat(temperature=0).options == {"temperature": 0}
    assert messages(temperature=0.5).options["do_sample"] is True


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"max_completion_tokens": 5}, {"max_new_tokens": 5}),
        ({"max_tokens": 5, "max_completion_tokens": 5}, {"max_new_tokens": 5}),
        ({"logit_bias": {"7": -100, "9": 2.5}}, {"logit_bias": {7: -100, 9: 2.5}}),
        ({"logprobs": True}, {"num_logprobs": 0}),
        ({"logprobs": True, "top_logprobs": 3.0}, {"num_logprobs": 3}),
        ({"stop": "END"}, {"stop": "END"}),
        ({"response_format": {"type": "text"}}, {}),
        ({"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
        ({"reasoning_effort": "low"}, {"template_variables": {"reasoning_effort": "low", "enable_thinking": True}}),
        ({"reasoning_effort": "none"}, {"template_variables": {"reasoning_effort": "none", "enable_thinking": False}}),
        (
            {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": True}},
            {"template_variables": {"reasoning_effort": "none", "enable_thinking": True}},
        ),
        ({"continue_final_message": True}, {"continue_final_message": True}),
    ],
)
def test_options_of_chat(fields: dict[str, Any], options: dict[str, Any]) -> None:
    assert chat(**fields).options == options


def test_schemas_and_tools_mean_the_same_in_every_api() -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
    assert chat(response_format=shape).options["response_format"] == shape
    text = {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}
    assert response(text=text).options["response_format"] == shape
    asked = messages(output_config={"format": {"type": "json_schema", "schema": SCHEMA}})
    assert asked.options["response_format"]["json_schema"]["schema"] == SCHEMA

    function = {"name": "f", "description": "d", "parameters": SCHEMA}
    tool = {"type": "function", "function": function}
    named = {"type": "function", "function": {"name": "f"}}
    wanted = {"tools": [tool], "tool_choice": named, "parallel_tool_calls": False}
    assert chat(tools=[tool], tool_choice=named, parallel_tool_calls=False).options == wanted
    flat, choice = {"type": "function", **function}, {"type": "function", "name": "f"}
    assert response(tools=[flat], tool_choice=choice, parallel_tool_calls=False).options == wanted
    theirs = {"name": "f", "description": "d", "input_schema": SCHEMA}
    choice = {"type": "tool", "name": "f", "disable_parallel_tool_use": True}
    assert messages(tools=[theirs], tool_choice=choice).options == {**wanted, "max_new_tokens": 9}


def test_a_conversation_with_a_call_means_the_same_in_every_api() -> None:
    function = {"name": "f", "arguments": '{"a":1}'}
    called = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    thought = {**called, "reasoning": "Hm."}
    result = {"role": "tool", "tool_call_id": "c", "content": "2"}
    turns = chat(messages=[HELLO, thought, result]).messages
    assert turns == [HELLO, {**called, "reasoning_content": "Hm."}, result]
    items = [
        HELLO,
        {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "function_call", "call_id": "c", **function},
        {"type": "function_call_output", "call_id": "c", "output": "2"},
    ]
    assert response(input=items).messages == turns
    blocks = [
        HELLO,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "2"}]},
    ]
    theirs = messages(messages=blocks).messages
    theirs[1]["tool_calls"][0]["function"]["arguments"] = json.dumps({"a": 1}, separators=(",", ":"))
    assert theirs == [HELLO, {**turns[1], "content": ""}, result]


def test_a_last_turn_of_the_assistant_is_gone_on_with_as_anthropic_does() -> None:
    asked = messages(messages=[HELLO, {"role": "assistant", "content": "I th"}])
    assert asked.options["continue_final_message"] is True


def test_instructions_stand_before_earlier_turns() -> None:
    earlier = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "1"}]
    system = {"role": "system", "content": "Count."}
    assert response(earlier, instructions="Count.").messages == [system, *earlier, HELLO]


def test_whose_conversations_share_what_is_computed() -> None:
    assert chat(user="ann").scope == response(user="ann").scope == "ann"
    assert messages(metadata={"user_id": "ann"}).scope == "ann"
    assert chat(user="ann", prompt_cache_key="app").scope == "app"


def test_prompts_of_completions() -> None:
    def prompts(prompt: Any) -> Any:
        body = json.dumps({"model": "m", "prompt": prompt}).encode()
        return ask_completion(parse(CompletionRequest, body, max_depth=64)).prompts

    assert prompts("a") == ["a"]
    assert prompts(["a", "b"]) == ["a", "b"]
    assert prompts([1, 2]) == [[1, 2]]
    assert prompts([[1], [2]]) == [[1], [2]]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": [HELLO]}, "model"),
        (
            {"model": "m", "messages": [HELLO, {"role": "user", "content": [{"type": "text"}]}]},
            "messages[1].content[0].text",
        ),
        (
            {"model": "m", "messages": [HELLO], "tools": [{"type": "function", "function": {}}]},
            "tools[0].function.name",
        ),
        ({"model": "m", "messages": [HELLO], "stop": ["a", 1]}, "stop[1]"),
        ({"model": "m", "messages": {"a": 1}}, "messages"),
    ],
)
def test_the_field_that_is_to_blame(body: Any, param: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse(ChatRequest, json.dumps(body).encode(), max_depth=64)
    assert caught.value.param == param
