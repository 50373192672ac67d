from __future__ import annotations

import re

from kaiwa.apps.protocol.typescript import json_schema, typescript


def test_every_name_that_is_used_is_declared() -> None:
    text = typescript()
    declared = set(re.findall(r"^export (?:interface|type) (\w+)", text, re.MULTILINE))
    code = re.sub(r"/\*\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    assert set(re.findall(r"\b[A-Z][a-z]\w*", code)) - {"Record"} == declared


def test_names_are_unique() -> None:
    declared = re.findall(r"^export (?:interface|type) (\w+)", typescript(), re.MULTILINE)
    assert len(declared) == len(set(declared))


def test_what_the_server_sends_is_always_whole() -> None:
    schemas = json_schema()["$defs"]
    for name in ("Message", "Step", "Ask", "Events", "Welcome"):
        assert set(schemas[name]["required"]) == set(schemas[name]["properties"])


def test_what_a_page_sends_may_leave_defaults_out() -> None:
    assert "file_ids?: string[];" in typescript()


def test_an_interface_by_hand() -> None:
    expected = """/** The message is gone. */
export interface MessageRemoved {
  type: "message_removed";
  message_id: string;
}
"""
    assert expected in typescript()
