"""Conversations in every shape that chat templates tell apart."""

from __future__ import annotations

from typing import Any

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather <now> & 'here', in 東京 too",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "Where"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]


def user(content: str) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: str, **extra: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **extra}


def system(content: str) -> dict[str, Any]:
    return {"role": "system", "content": content}


CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "get_weather", "arguments": {"city": "Köln", "days": 2}},
}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": '{"celsius": 21.5}'}

CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "one question": [user("Hey, can you explain gravity to me? ")],
    "system": [system("Be <b>brief</b> & kind."), user("  Hi")],
    "turns": [user("One"), assistant("Two"), user("Three\n")],
    "system and turns": [system("会話"), user("One"), assistant(" Two "), user("Three"), assistant("4"), user("5")],
    "thinking": [user("One"), assistant("<think>\nHm.\n</think>\n\nTwo"), user("Three")],
    "reasoning field": [user("One"), assistant("Two", reasoning_content="Hm."), user("Three")],
    "tool call": [user("Weather?"), assistant("", tool_calls=[CALL])],
    "tool result": [user("Weather?"), assistant("", tool_calls=[CALL]), RESULT],
    "after a tool": [
        system("Be brief."),
        user("Weather?"),
        assistant("", tool_calls=[CALL]),
        RESULT,
        assistant("It is warm."),
        user("Thanks"),
    ],
}
